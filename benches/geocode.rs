//! Measures questions to the reverse geocoder, and compares the figures with what is asked of them.
//!
//! ```text
//! PBFHOGG_BENCH_FILE=FILE cargo bench --bench geocode [-- POINTS]
//! ```
//!
//! Makes an index of the file in a temporary directory, or uses the one in `PBFHOGG_BENCH_INDEX`, and asks about 200,000
//! places within 50 m of the nodes of the file, in no order. Prints the time for opening the index and the first answer,
//! the median and the 99th percentile of one question on one thread when the index is in memory, and how many places a
//! second `geocode` answers as JSON on two threads. Ends with status 1 if a figure is short.

#[path = "../src/for_tests/random.rs"]
mod random;

use pbfhogg::commands::{build_geocode_index, geocode};
use pbfhogg::geocode::{GeocodeIndex, QueryOptions};
use pbfhogg::{Context, Element, ElementReader, Location};
use random::Random;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Places within 50 m of nodes that are drawn from all nodes of a file, in no order.
fn places_of(path: &PathBuf, count: usize) -> Vec<Location> {
    let (mut random, mut seen, mut places) = (Random(7), 0, Vec::new());
    let reader = ElementReader::from_path(path).unwrap();
    reader
        .for_each(|element| {
            let Element::Node(node) = element else {
                return;
            };
            let Some(location) = node.location() else {
                return;
            };
            seen += 1;
            let mut moved = |e7: i32| e7 + random.below(9000) - 4500;
            let place = Location::new(moved(location.lat_e7()), moved(location.lon_e7()));
            if places.len() < count {
                places.extend(place)
            } else {
                let at = random.below(seen) as usize;
                if let (Some(slot), Some(place)) = (places.get_mut(at), place) {
                    *slot = place;
                }
            }
        })
        .unwrap();
    for at in (1..places.len()).rev() {
        places.swap(at, random.below(at as u64 + 1) as usize);
    }
    places
}

/// Prints a figure beside its limit. Returns whether it is short.
fn report(name: &str, found: f64, limit: f64, unit: &str, more_is_better: bool) -> bool {
    let is_short = if more_is_better {
        found < limit
    } else {
        found > limit
    };
    let (verb, verdict) = (
        if more_is_better {
            "at least"
        } else {
            "at most"
        },
        if is_short { "SHORT" } else { "ok" },
    );
    println!("{name:>22}: {found:>10.1} {unit} ({verb} {limit} {unit}) {verdict}");
    is_short
}

/// Builds an index, and prints its size and the time. Returns whether it is too large.
fn is_built_badly(file: &Path, index: &Path) -> bool {
    let options = build_geocode_index::Options::new(file, index);
    let start = Instant::now();
    let summary = build_geocode_index::run(&options, &Context::default()).unwrap();
    let share = summary.bytes as f64 / file.metadata().unwrap().len() as f64;
    println!("built in {:.1} s", start.elapsed().as_secs_f64());
    report("index", share * 100.0, 40.0, "% of the file", false)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn main() {
    let Some(file) = std::env::var_os("PBFHOGG_BENCH_FILE").map(PathBuf::from) else {
        println!("set PBFHOGG_BENCH_FILE to a PBF file");
        return;
    };
    let count = std::env::args().find_map(|arg| arg.parse().ok());
    let count: usize = count.unwrap_or(200_000);
    let directory = tempfile::tempdir_in(file.parent().unwrap()).unwrap();
    let built = std::env::var_os("PBFHOGG_BENCH_INDEX").map(PathBuf::from);
    let mut is_short = false;
    let index_path = built.unwrap_or_else(|| {
        let path = directory.path().join("index");
        is_short = is_built_badly(&file, &path);
        path
    });

    let places = places_of(&file, count);
    let query = QueryOptions::default();
    let start = Instant::now();
    let index = GeocodeIndex::open(&index_path).unwrap();
    let first = index.reverse(places[0], &query).unwrap();
    let opened = start.elapsed();
    println!("{:>22}: {}", "the first place", first.label);
    is_short |= report(
        "open, first answer",
        micros(opened) / 1e3,
        10.0,
        "ms",
        false,
    );

    // Once for the memory, and five times for the clock: the machine is not the same in each second.
    let mut passes: Vec<Vec<Duration>> = (0..6)
        .map(|_| {
            let mut times = Vec::with_capacity(places.len());
            for place in &places {
                let start = Instant::now();
                let answer = index.reverse(*place, &query).unwrap();
                times.push(start.elapsed());
                std::hint::black_box(answer);
            }
            times.sort();
            times
        })
        .skip(1)
        .collect();
    let at = |times: &Vec<Duration>, part: f64| {
        micros(times[((times.len() - 1) as f64 * part) as usize])
    };
    passes.sort_by(|one, other| at(one, 0.5).total_cmp(&at(other, 0.5)));
    let times = &passes[passes.len() / 2];
    is_short |= report("median", at(times, 0.5), 10.0, "µs", false);
    is_short |= report("99th percentile", at(times, 0.99), 30.0, "µs", false);
    println!("{:>22}: {:>10.1} µs", "99.9th percentile", at(times, 0.999));

    let mut text = String::new();
    for place in &places {
        let degrees = [place.lat_e7(), place.lon_e7()].map(|e7| f64::from(e7) / 1e7);
        let _ = writeln!(text, "{} {}", degrees[0], degrees[1]);
    }
    let batch = geocode::Options::new(&index_path).is_json(true).jobs(2);
    let mut rates: Vec<f64> = (0..7)
        .map(|_| {
            let start = Instant::now();
            geocode::run(&batch, text.as_bytes(), std::io::sink()).unwrap();
            places.len() as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    is_short |= report("two threads, JSON", rates[3], 225_000.0, "places/s", true);
    std::process::exit(i32::from(is_short));
}
