# Installs Spark from PyPI and Apache Sedona from Maven Central to target/readers. Sourced by the scripts that use them.
# Sets `build`, `python` and `sedona`, the directory with a directory of jars for each version of Sedona.
here=$(cd "$(dirname "$0")" && pwd)
build=${CARGO_TARGET_DIR:-$here/../../target}/readers
mkdir -p "$build"
build=$(cd "$build" && pwd)
python=$build/spark/bin/python
sedona=$build/sedona
(
  flock 9
  [ -e "$build/spark/complete-2" ] && exit
  rm -rf "$build/spark" "$sedona"
  python3 -m venv "$build/spark"
  "$build/spark/bin/pip" install -q pyspark==3.5.5 >&2
  for versions in 1.7.1:28.5 1.8.0:33.1 1.8.1:33.1; do
    version=${versions%:*}
    for jar in "org.apache.sedona:sedona-spark-shaded-3.5_2.12:$version" \
      "org.datasyslab:geotools-wrapper:$version-${versions#*:}"; do
      mvn -q -B dependency:copy "-Dartifact=$jar" "-DoutputDirectory=$sedona/$version" >&2
    done
  done
  touch "$build/spark/complete-2"
) 9>"$build/spark.lock" || { echo "$0: cannot install Spark and Sedona" >&2; exit 2; }

# Runs a Python program with a version of Sedona on two local workers: submit VERSION PROGRAM ARGUMENT...
submit() {
  local jars; jars=$(printf '%s,' "$sedona/$1"/*.jar); shift
  PYSPARK_PYTHON=$python PYSPARK_DRIVER_PYTHON=$python "$build/spark/bin/spark-submit" --master 'local[2]' \
    --driver-memory 3g --jars "${jars%,}" "$@" 2>>"$build/spark.log"
}
