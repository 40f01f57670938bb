//! Measures `extract` of many regions in one run, compared with one region and with a run per region.
//!
//! ```text
//! PBFHOGG_BENCH_FILE=FILE cargo bench --bench regions [-- REGIONS] [--compare]
//! ```
//!
//! Each region is a box of 0.5 to 3 km around a node of the file, so that none is empty. Prints the time for one region
//! and for all regions (medians of three alternating runs), and the estimated and the used memory. With `--compare`,
//! also extracts each region separately, and compares the files byte by byte.

#[path = "../src/for_tests/random.rs"]
mod random;

use pbfhogg::FormatError;
use pbfhogg::unstable::file::{BlobDecoder, BlobPlan, PbfFile, PlanNeeds};
use pbfhogg::unstable::pbf::{Block, Element};
use pbfhogg::{Context, ObjectKind};
use random::Random;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// West, south, east and north edge of a box in degrees.
type Sides = [f64; 4];

fn regions_of(path: &Path, count: usize) -> Vec<Sides> {
    let ctx = Context::default();
    let file = PbfFile::open(path, &ctx).unwrap();
    let plan = BlobPlan::open(&file, PlanNeeds::Ranges, &ctx).unwrap();
    let is_of_nodes = |kinds: pbfhogg::unstable::osm::KindSet| kinds.contains(ObjectKind::Node);
    let blobs: Vec<_> = plan
        .entries
        .iter()
        .filter(|entry| is_of_nodes(entry.kinds))
        .collect();
    let mut reader = BlobDecoder::new(&file.input, &ctx);
    let mut random = Random(11);
    let mut region = || {
        let entry = blobs[random.below(blobs.len() as u64) as usize];
        let wanted = random.below(u64::from(entry.count));
        let payload = reader.payload(entry).unwrap();
        let (mut number, mut place) = (0, (0.0, 0.0));
        let block = Block::parse(payload).unwrap();
        block
            .try_for_each(|element| {
                if let Element::Node(node) = element
                    && number <= wanted
                {
                    (number, place) = (number + 1, (node.lat(), node.lon()));
                }
                Ok::<_, FormatError>(())
            })
            .unwrap();
        let [width, height] = [0, 1].map(|_| 0.0025 + random.below(10_000) as f64 * 1e-6);
        let (lat, lon) = place;
        [lon - width, lat - height, lon + width, lat + height]
    };
    (0..count).map(|_| region()).collect()
}

fn run(arguments: &[&str]) -> Duration {
    let start = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pbfhogg"));
    let status = command.arg("extract").args(arguments).arg("-O").status();
    assert!(status.unwrap().success());
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    let Some(input) = std::env::var_os("PBFHOGG_BENCH_FILE").map(PathBuf::from) else {
        println!("PBFHOGG_BENCH_FILE names the file to cut regions out of");
        return;
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.iter().find_map(|argument| argument.parse().ok());
    let compares = arguments.iter().any(|argument| argument == "--compare");
    let regions = regions_of(&input, count.unwrap_or(200));

    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let bbox = |sides: &Sides| sides.map(|side| format!("{side:.7}")).join(",");
    let extracts = regions.iter().enumerate().map(|(number, sides)| {
        let bbox = bbox(sides);
        format!("{{\"output\": \"{number}.osm.pbf\", \"bbox\": [{bbox}]}}")
    });
    let extracts = extracts.collect::<Vec<_>>().join(",\n");
    let (config, alone, stats) = (path("config.json"), path("alone.osm.pbf"), path("stats"));
    std::fs::write(&config, format!("{{\"extracts\": [{extracts}]}}")).unwrap();

    let (input, folder) = (input.to_str().unwrap(), directory.path().to_str().unwrap());
    let (mut one, mut all) = (Vec::new(), Vec::new());
    let first = bbox(&regions[0]);
    for round in 0..3 {
        one.push(run(&[input, "-q", "-b", &first, "-o", &alone]));
        let mut many = vec![input, "-c", &config, "-d", folder, "--stats", &stats];
        // The first run is not quiet: it prints its estimate of memory.
        if round > 0 {
            many.push("-q");
        } else {
            many.push("--no-progress");
        }
        all.push(run(&many));
    }
    let (one, all) = (median(one), median(all));
    println!(
        "one region {one:.2} s, {} regions {all:.2} s: {:.2} times",
        regions.len(),
        all / one
    );
    let stats = std::fs::read_to_string(&stats).unwrap();
    stats
        .lines()
        .filter(|line| line.contains("peak_memory"))
        .for_each(|line| println!("{}", line.trim()));
    if compares {
        let differing = regions.iter().enumerate().filter(|(number, sides)| {
            run(&[input, "-q", "-b", &bbox(sides), "-o", &alone]);
            let among = std::fs::read(path(&format!("{number}.osm.pbf"))).unwrap();
            std::fs::read(&alone).unwrap() != among
        });
        println!("{} files differ", differing.count());
    }
}
