-- CREATE TABLE no (
SET x = 1;

-- The items.
CREATE TABLE IF NOT EXISTS shop.items (
    id integer PRIMARY KEY,
    name text DEFAULT ';'
);

CREATE OR REPLACE FUNCTION add_item(name text)
RETURNS integer AS $body$
BEGIN
    INSERT INTO items (name) VALUES (name);
    CREATE TEMP TABLE inner_one (id integer);
    RETURN 1;
END;
$body$ LANGUAGE plpgsql;

create view names as
select name,
       case when id > 1 then 'a' else 'b' end as kind
from items;

CREATE TRIGGER touched BEFORE UPDATE ON items
FOR EACH ROW
BEGIN
    IF NEW.id > 1 THEN
        SET NEW.name = 'x';
    END IF;
    UPDATE items SET name = 'y';
END;

CREATE UNIQUE INDEX by_name ON items (name);
SELECT * FROM items;
