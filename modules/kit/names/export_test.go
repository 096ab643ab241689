package names

// Distance is the distance of two texts, for tests.
var Distance = distance
