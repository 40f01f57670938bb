#!/usr/bin/env python3
"""How jobs would scale to more cores, and how far they are from their floors, from traces of all threads.

    benches/scaling/scaling.py [--traces-only] PROGRAM [JOB…]

Runs each job of the table on one core, unless --traces-only is given, and then on two with a trace. Prints the seconds
that both took, and those that the job would take on more cores. The files are those of the other benchmarks
(PBFHOGG_BENCH_DATA, by default ~/.cache/pbfhogg-bench).

A run is cut into slices of 5 ms. In a slice in which no worker runs, the calling thread (which plans, and passes on
results in order) works alone, or all wait for the disk; such time stays as it is on any number of cores. In all other
slices, the work of n cores takes the longest of: the calling thread's cpu time, half of the cpu time of the two threads
that write, and the cpu time of all threads divided by n. Caches, the memory's bandwidth and the disk are not modelled.

The second table has the floor of a job: what inflating, deflating and the kernel (which copies from and to files) take
of its cpu time, divided by the two cores. The symbols of PROGRAM are needed for that: build it with
`cargo build --profile profiling`. The bytes are those of `--stats`.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time

DATA = os.environ.get("PBFHOGG_BENCH_DATA", os.path.expanduser("~/.cache/pbfhogg-bench"))
SLICE = 0.005
FREQUENCY = 1000
CORES = [8, 16, 32]
# Per job: the arguments, in which {raw} is the world without an index, {m} the indexed world, {l} the same with
# locations in its ways, {u} the same data as 38 interleaved runs without an index, {c} the changes of a day, {d} the
# world after that day, {out} a file, and {dir} a directory that does not exist.
JOBS = {
    "cat, first index": "cat {raw} -o {out}",
    "cat --clean version": "cat --clean version {m} -o {out}",
    "check --full": "check --full {m}",
    "check --refs": "check --refs {m}",
    "check --ids": "check --ids {m}",
    "getparents": "getparents {m} n1 n600003193 w1 r1 -o {out}",
    "diff": "diff -c {m} {d}",
    "inspect tags": "inspect tags {m}",
    "extract, a town": "extract -b 14.35,35.85,14.55,35.95 {m} -o {out}",
    "tags-filter -R w/highway=primary": "tags-filter -R {m} w/highway=primary -o {out}",
    "tags-filter w/highway": "tags-filter {m} w/highway -o {out}",
    "tags-filter w/highway=primary": "tags-filter {m} w/highway=primary -o {out}",
    "time-filter": "time-filter {m} 2019-01-01T00:00:00Z -o {out}",
    "renumber": "renumber {m} -o {out}",
    "sort, 38 runs": "sort {u} -o {out}",
    "apply-changes": "apply-changes {m} {c} -o {out}",
    "apply-changes --locations-on-ways": "apply-changes --locations-on-ways {l} {c} -o {out}",
    "augmented-diff": "augmented-diff {l} {c} -o {dir}.adiff",
    "add-locations-to-ways, sparse": "add-locations-to-ways -n -i sparse {m} -o {out}",
    "add-locations-to-ways, external": "add-locations-to-ways -n -i external --max-memory 256M {m} -o {out}",
    "build-geocode-index": "build-geocode-index {m} --output-dir {dir}",
    "export, GeoJSON": "export {l} -f geojsonseq -o {dir}.geojsonseq",
    "export, GeoParquet": "export {l} -f geoparquet -o {dir}.parquet",
    "cat to OPL": "cat {m} -f opl -o /dev/null -O",
    "cat, 38 runs": "cat {u} -o {out}",
    "renumber, 38 runs": "renumber {u} -o {out}",
    "build-geocode-index, 38 runs": "build-geocode-index {u} --output-dir {dir}",
    "apply-changes, 38 runs": "apply-changes {u} {c} -o {out}",
    "add-locations-to-ways, external, 38 runs": (
        "add-locations-to-ways -n -i external --max-memory 256M {u} -o {out}"
    ),
    "tags-filter w/highway=primary, 38 runs": "tags-filter {u} w/highway=primary -o {out}",
    "export, GeoParquet, 38 runs": "export {u} -f geoparquet -o {dir}.parquet",
}


# The parts of the floor.
FLOOR = ["inflating", "deflating", "kernel"]
# The number of other parts that are named.
LARGEST = 4
# The names of functions that inflate and deflate.
INFLATING = re.compile(
    r"deflate_decompress|build_decode_table|zlib_rs|SegmentInflater|ZSTD_decompress|HUF_decompress|lz4_flex.*decompress"
)
DEFLATING = re.compile(
    r"deflate_compress|deflate_flush|deflate_make|build_tree|deflate::|LiteralEncoder|ZSTD_|HUF_|FSE_|HIST_|lz4_flex"
)


def part_of(symbol, file):
    """The part of a job that a sample belongs to: one of FLOOR, or a module or another crate."""
    if "kernel" in file:
        return "kernel"
    if INFLATING.search(symbol):
        return "inflating"
    if DEFLATING.search(symbol):
        return "deflating"
    # A method of a generic type has the type before its path: <T as path>::method.
    path = re.sub(r"^<+(?:.* as )?", "", symbol).split("::")
    if path[0] == "pbfhogg":
        return "::".join(path[1:3])
    return "memory" if "mem" in path[0] or "malloc" in path[0] or path[0] in ("cfree", "realloc") else path[0]


def run_job(command):
    """Runs a command, and ends the program if it fails."""
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    # 1 is an answer of `check` and `diff`.
    if ended.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: {ended.stderr}")


def trace(program, arguments, directory):
    """Runs a job. Returns its statistics, and the samples: the time, the thread and its name, the id of the calling
    thread, and the part of the job."""
    data, stats = os.path.join(directory, "perf.data"), os.path.join(directory, "stats.json")
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-o", data]
    command = [program] + arguments + ["--stats", stats]
    os.sync()
    run_job(record + command)
    script = ["perf", "script", "-i", data, "-F", "comm,pid,tid,time,ip,sym,dso"]
    text = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    line = re.compile(r"\s*(.*?)\s+(\d+)/(\d+)\s+([\d.]+):\s+[0-9a-f]+\s+(.*)\s\((.*)\)$")
    samples = [match.groups() for match in map(line.match, text.splitlines()) if match]
    with open(stats) as file:
        found = json.load(file)
    return found, [
        (float(time), int(tid), name, int(pid), part_of(symbol, file))
        for name, pid, tid, time, symbol, file in samples
    ]


def model(samples):
    """Returns the seconds of the run, the cpu seconds, the share that is serial, and the seconds on each of CORES."""
    caller, start = samples[0][3], samples[0][0]
    end = max(time for time, *_ in samples)
    slices = collections.defaultdict(collections.Counter)
    for time, tid, name, *_ in samples:
        role = "caller" if tid == caller else "writer" if name == "write" else "worker"
        slices[int((time - start) / SLICE)][role] += 1 / FREQUENCY
    count = int((end - start) / SLICE) + 1
    alone, shared = 0.0, collections.Counter()
    for index in range(count):
        found = slices.get(index, collections.Counter())
        if found["worker"] > 0:
            shared.update(found)
        else:
            alone += SLICE
    cpu = len(samples) / FREQUENCY

    def on(cores):
        return alone + max(shared["caller"], shared["writer"] / 2, sum(shared.values()) / cores)

    return end - start, cpu, (alone + shared["caller"]) / cpu, [on(cores) for cores in CORES]


def floor(stats, samples, seconds):
    """Returns the cells of the table of floors."""
    parts = collections.Counter(part for *_, part in samples)
    cpu = {part: parts.pop(part, 0) / FREQUENCY for part in FLOOR}
    least = sum(cpu.values()) / 2
    cpu["rest"] = sum(parts.values()) / FREQUENCY
    largest = ", ".join(f"{part} {count / len(samples):.0%}" for part, count in parts.most_common(LARGEST))
    megabytes = [stats[f"bytes_{what}"] / 1e6 for what in ("decoded", "written", "copied")]
    return (
        [f"{value:,.0f}" for value in megabytes]
        + [f"{value:.2f}" for value in cpu.values()]
        + [f"{least:.2f}", f"{seconds / least:.2f}" if least else "", largest]
    )


def arguments_of(job, directory):
    """Returns the arguments of a job whose outputs are in `directory`."""
    files = {
        "raw": f"{DATA}/world-m.osm.pbf",
        "m": f"{DATA}/indexed-world-m.osm.pbf",
        "l": f"{DATA}/located-indexed-world-m.osm.pbf",
        "u": f"{DATA}/world-u.osm.pbf",
        "c": f"{DATA}/world-m.osc.gz",
        "d": f"{DATA}/applied-indexed-world-m.osm.pbf",
        "out": f"{directory}/out.osm.pbf",
        "dir": f"{directory}/out",
    }
    return [word.format(**files) for word in JOBS[job].split()]


def on_one_core(program, job):
    """Returns the seconds that a job takes on one core."""
    with tempfile.TemporaryDirectory(dir=DATA) as directory:
        command = ["taskset", "-c", "0", program] + arguments_of(job, directory)
        os.sync()
        start = time.monotonic()
        run_job(command)
        return time.monotonic() - start


def print_row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def print_head(cells):
    print_row(cells)
    print("|---" * len(cells) + "|")


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--traces-only", action="store_true", help="leave out the runs on one core")
    parser.add_argument("program", metavar="PROGRAM", help="a build with symbols")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="names of jobs; all if none is given")
    given = parser.parse_args()
    program = given.program
    modelled = [f"{cores} cores" for cores in CORES]
    print_head(["job", "1 core: s", "2 cores: s", "cpu s", "alone and in order"] + modelled)
    floors = []
    for job in given.jobs or JOBS:
        with tempfile.TemporaryDirectory(dir=DATA) as directory:
            arguments = arguments_of(job, directory)
            inputs = [word for word in arguments if word.startswith(DATA) and directory not in word]
            missing = [os.path.basename(word) for word in inputs if not os.path.exists(word)]
            if missing:
                print(f"| {job} | missing: {', '.join(missing)} |")
                continue
            one = "" if given.traces_only else f"{on_one_core(program, job):.2f}"
            stats, samples = trace(program, arguments, directory)
        seconds, cpu, serial, more = model(samples)
        floors.append([job, f"{seconds:.2f}"] + floor(stats, samples, seconds))
        measured = [one, f"{seconds:.2f}", f"{cpu:.2f}"]
        print_row([job] + measured + [f"{serial:.1%}"] + [f"{value:.2f}" for value in more])
    print()
    parts = ["inflating", "deflating", "kernel", "rest", "floor", "ratio", "largest of the rest"]
    print_head(["job", "s", "MB inflated", "written", "copied"] + parts)
    for cells in floors:
        print_row(cells)


main()
