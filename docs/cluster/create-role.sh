# Creates the role and the database of the nodes, when the PostgreSQL of compose.yaml starts for the first time.
# The role is no superuser: it owns its database, and nothing else.
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=password="$KONTOR_PASSWORD" --username "$POSTGRES_USER" --dbname postgres <<'SQL'
CREATE ROLE kontor LOGIN PASSWORD :'password';
CREATE DATABASE kontor OWNER kontor ENCODING 'UTF8' TEMPLATE template0;
SQL
