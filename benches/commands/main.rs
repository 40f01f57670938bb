//! Measures whole commands against other programs, as configured in `brokkr.toml`: alternating runs, medians, gates.
//!
//! ```text
//! cargo bench --bench commands                     every job
//! cargo bench --bench commands -- cat sort         some jobs
//! cargo bench --bench commands -- --runs 9 --dataset s --markdown
//! cargo bench --bench commands -- --plot cat,sort-indexed=growth.svg
//! ```
//!
//! Exit status 1 if a job fails its gate, 2 on errors. Every run is appended to `bench-results/runs.jsonl`.

mod config;
mod measure;
mod report;

use config::{Config, Job};
use measure::Usage;
use report::{Row, Store};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The options on the command line.
struct Options {
    jobs: Vec<String>,
    runs: usize,
    dataset: Option<String>,
    markdown: bool,
    /// Job names, and the SVG file that their curves are drawn to.
    plot: Option<(Vec<String>, PathBuf)>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        jobs: Vec::new(),
        runs: 5,
        dataset: None,
        markdown: false,
        plot: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            // `cargo bench` adds this option.
            "--bench" => {}
            "--markdown" => options.markdown = true,
            "--runs" => options.runs = value()?.parse().map_err(|_| "--runs takes a number")?,
            "--dataset" => options.dataset = Some(value()?),
            "--plot" => {
                let value = value()?;
                let (jobs, path) = value
                    .split_once('=')
                    .ok_or("--plot takes JOB[,JOB…]=FILE.svg")?;
                let jobs = jobs.split(',').map(str::to_owned).collect();
                options.plot = Some((jobs, path.into()));
            }
            option if option.starts_with('-') => return Err(format!("{option} is not an option")),
            job => options.jobs.push(job.to_owned()),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    if let Some(usage) = measure::as_helper() {
        return usage;
    }
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("commands: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let options = options()?;
    let config = Config::load(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("brokkr.toml")
            .as_path(),
    )?;
    let store = Store::open(Path::new("bench-results"))?;
    if let Some((jobs, path)) = &options.plot {
        return store.plot(jobs, path).map(|()| true);
    }
    let mut rows = Vec::new();
    for (name, job) in config
        .jobs
        .iter()
        .filter(|(name, _)| options.jobs.is_empty() || options.jobs.contains(name))
    {
        let dataset = options.dataset.as_deref().unwrap_or(&job.dataset);
        match measure_job(&config, name, job, dataset, options.runs, &store) {
            Ok(row) => {
                eprintln!("{}", row.line());
                rows.push(row);
            }
            Err(reason) => eprintln!("{name}: skipped: {reason}"),
        }
    }
    // Gates apply only to the job's own data set.
    let gated = options.dataset.is_none();
    if options.markdown {
        print!("{}", report::markdown(&rows, &config.peer_versions()));
    } else {
        print!("{}", report::table(&rows));
    }
    let short: Vec<String> = rows
        .iter()
        .filter(|_| gated)
        .filter_map(Row::shortfall)
        .collect();
    short.iter().for_each(|gate| println!("GATE {gate}"));
    Ok(short.is_empty())
}

fn measure_job(
    config: &Config,
    name: &str,
    job: &Job,
    dataset: &str,
    runs: usize,
    store: &Store,
) -> Result<Row, String> {
    let inputs = config.inputs(dataset)?;
    let ours = inputs.fill(&job.run, "ours")?;
    let program = PathBuf::from(env!("CARGO_BIN_EXE_pbfhogg"));
    let peer = job
        .peer
        .as_ref()
        .and_then(|peer| config.peers.get(peer))
        .filter(|peer| peer.is_there());
    let theirs = inputs.fill(&job.against, "theirs")?;
    let (mut our_usage, mut their_usage) = (Vec::new(), Vec::new());
    // The first run of each program warms the page cache and does not count.
    for run in 0..=runs {
        let usage = measure::run(&program, &ours, job.status)?;
        let other = peer
            .map(|peer| measure::run(Path::new(&peer.program), &theirs, job.peer_status()))
            .transpose()?;
        if run > 0 {
            store.add(name, dataset, "pbfhogg", &usage, &inputs)?;
            our_usage.push(usage);
            if let (Some(other), Some(peer)) = (other, &job.peer) {
                store.add(name, dataset, peer, &other, &inputs)?;
                their_usage.push(other);
            }
        }
    }
    inputs.clean();
    Ok(Row {
        job: name.to_owned(),
        about: job.about.clone(),
        dataset: dataset.to_owned(),
        ours: Usage::median(&our_usage).ok_or("no run")?,
        peer: job.peer.clone().zip(Usage::median(&their_usage)),
        gate: job.gate,
    })
}
