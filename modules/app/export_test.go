package app

// FormID is the identifier of the present form of records.
const FormID = formID
