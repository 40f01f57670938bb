-- Questions to the features and tables of a file, for DuckDB 1.2 or later. No extension is needed.
--
--   pbfhogg export malta.osm.pbf -o malta.parquet
--   pbfhogg export malta.osm.pbf --partition geometry_type -o malta-features
--   pbfhogg export malta.osm.pbf --raw -o malta-tables
--   duckdb < duckdb.sql
--
-- With the extension spatial (INSTALL spatial; LOAD spatial), the column geometry has a type, and functions such as
-- ST_Area and ST_Length_Spheroid take it. reference/analytics.md has the answers.

-- The most frequent amenities.
SELECT tags['amenity'] AS amenity, count(*) AS features
FROM 'malta-features/*/*.parquet'
WHERE amenity IS NOT NULL
GROUP BY amenity ORDER BY features DESC, amenity LIMIT 5;

-- Buildings by town, as far as they have an address.
SELECT tags['addr:city'] AS town, count(*) AS buildings
FROM 'malta-features/geometry_type=polygon/*.parquet'
WHERE tags['building'] IS NOT NULL AND town IS NOT NULL
GROUP BY town ORDER BY buildings DESC, town LIMIT 5;

-- Features by the year of their last edit.
SELECT year("timestamp") AS year, count(*) AS features
FROM 'malta.parquet'
GROUP BY year ORDER BY year DESC LIMIT 4;

-- Restaurants in a box: only the row groups whose boxes meet it are read.
SELECT osm_type, osm_id, tags['name'] AS name
FROM 'malta.parquet'
WHERE bbox.xmin <= 14.52 AND bbox.xmax >= 14.50 AND bbox.ymin <= 35.90 AND bbox.ymax >= 35.89
  AND tags['amenity'] = 'restaurant'
ORDER BY name NULLS LAST LIMIT 4;

-- Bus routes and the number of their ways, from the tables of objects.
SELECT tags['ref'] AS route, list_count(list_filter(members, lambda member: member."type" = 'way')) AS ways
FROM 'malta-tables/type=relation/*.parquet'
WHERE tags['route'] = 'bus'
ORDER BY ways DESC, route LIMIT 4;
