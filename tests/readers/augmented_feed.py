"""Keeps two tables of features current, one by MERGE and one by DELETE and INSERT, and compares them with exports."""

import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

# The statements of reference/changes.md.
MERGE = """
MERGE INTO merged f USING 'day.parquet' d ON f.osm_type = d.type AND f.osm_id = d.id
WHEN MATCHED AND d.new_geometry IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET tags = d.new_tags, geometry = d.new_geometry
WHEN NOT MATCHED AND d.new_geometry IS NOT NULL
  THEN INSERT (osm_type, osm_id, tags, geometry) VALUES (d.type, d.id, d.new_tags, d.new_geometry)
"""
DELETE = "DELETE FROM replaced f USING 'day.parquet' d WHERE f.osm_type = d.type AND f.osm_id = d.id"
INSERT = """
INSERT INTO replaced SELECT type, id, new_tags, new_geometry FROM 'day.parquet' WHERE new_geometry IS NOT NULL
"""


def main(pbfhogg: str, days: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)

        def run(*arguments: str) -> None:
            subprocess.run([pbfhogg, *arguments], cwd=root, check=True)

        def export() -> str:
            run("export", "-q", "-O", "now.osm.pbf", "-o", "now.parquet")
            return "SELECT osm_type, osm_id, tags, geometry FROM 'now.parquet'"

        run("synth", "-q", "--objects", "100000", "--changes", str(days), "-o", "now.osm.pbf")
        database = duckdb.connect()
        database.execute(f"SET file_search_path = '{root}'")
        for table in ("merged", "replaced"):
            database.execute(f"CREATE TABLE {table} AS {export()}")
        changed = 0
        for day in range(1, days + 1):
            changes = f"{day:03}.osc.gz"
            run("augmented-diff", "-q", "-O", "now.osm.pbf", changes, "-o", "day.parquet")
            run("apply-changes", "-q", "--in-place", "now.osm.pbf", changes)
            for statement in (MERGE, DELETE, INSERT):
                database.execute(statement)
            changed += database.sql("SELECT count(*) FROM 'day.parquet' WHERE new_geometry IS NOT NULL").fetchall()[0][0]
            expected = export()
            as_text = "SELECT osm_type, osm_id, tags::VARCHAR, geometry::VARCHAR"
            for table in ("merged", "replaced"):
                for one, other in ((table, f"({expected})"), (f"({expected})", table)):
                    query = f"SELECT count(*) FROM ({as_text} FROM {one} EXCEPT ALL {as_text} FROM {other})"
                    differences = database.sql(query).fetchall()[0][0]
                    if differences:
                        sys.exit(f"day {day}: {differences} rows of {table} differ")
        rows = database.sql("SELECT count(*) FROM merged").fetchall()[0][0]
        print(f"days={days} features={rows} changed={changed}")


main(sys.argv[1], int(sys.argv[2]))
