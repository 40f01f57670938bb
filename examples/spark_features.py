"""Questions to the features of a file, for Apache Sedona on Spark: locally, or on a cluster.

    pbfhogg export malta.osm.pbf --partition geometry_type -o malta-features
    spark-submit --packages org.apache.sedona:sedona-spark-shaded-3.5_2.12:1.7.1,org.datasyslab:geotools-wrapper:1.7.1-28.5 \
        spark_features.py malta-features

The directory may lie in object storage (s3a://bucket/features): Spark reads its files on all machines, and of each file
the row groups that a question needs.
"""

import json
import sys

from pyspark.sql import SparkSession

# The functions ST_... come with this extension.
spark = (
    SparkSession.builder.appName("features")
    .config("spark.sql.extensions", "org.apache.sedona.sql.SedonaSqlExtensions")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.kryo.registrator", "org.apache.sedona.core.serde.SedonaKryoRegistrator")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
features = spark.read.format("geoparquet").load(sys.argv[1])
for part in ("point", "linestring", "polygon"):
    features.where(f"geometry_type = '{part}'").createOrReplaceTempView(part)

print("Length of roads by class, in kilometres:")
spark.sql(
    """
    SELECT tags['highway'] AS class, round(sum(ST_LengthSpheroid(geometry)) / 1000, 1) AS km
    FROM linestring WHERE tags['highway'] IS NOT NULL
    GROUP BY class ORDER BY km DESC LIMIT 6
    """
).show()

print("Area by landuse, in hectares:")
spark.sql(
    """
    SELECT tags['landuse'] AS landuse, round(sum(ST_AreaSpheroid(geometry)) / 10000) AS ha
    FROM polygon WHERE tags['landuse'] IS NOT NULL
    GROUP BY landuse ORDER BY ha DESC LIMIT 6
    """
).show()

totals = {}
for part in ("point", "linestring", "polygon"):
    row = spark.sql(
        f"""
        SELECT count(*) AS features, min(ST_XMin(geometry)) AS west, min(ST_YMin(geometry)) AS south,
               max(ST_XMax(geometry)) AS east, max(ST_YMax(geometry)) AS north, sum(ST_Area(geometry)) AS area
        FROM {part}
        """
    ).first()
    totals[part] = row.asDict()
print(json.dumps(totals))
