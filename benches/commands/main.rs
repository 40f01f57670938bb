//! Measures whole commands against other programs, as configured in `brokkr.toml`: alternating runs, medians, gates.
//!
//! ```text
//! cargo bench --bench commands                     every job
//! cargo bench --bench commands -- cat sort         some jobs
//! cargo bench --bench commands -- --runs 9 --dataset s --markdown
//! cargo bench --bench commands -- --against ../before/target/release/pbfhogg
//! cargo bench --bench commands -- --plot cat,sort-indexed=growth.svg
//! ```
//!
//! `--against` runs another build of the program in place of the other programs. The gate of every job is then that this
//! build takes at most 3 % more time. Exit status 1 if a job fails its gate, 2 on errors. Every run is appended to `bench-results/runs.jsonl`.

mod config;
mod measure;
mod report;

use config::{Config, Gate, Job};
use measure::Usage;
use report::{Row, Store};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The options on the command line.
struct Options {
    jobs: Vec<String>,
    runs: usize,
    dataset: Option<String>,
    /// Another build of the program, which is measured in place of the peers.
    against: Option<PathBuf>,
    markdown: bool,
    /// Job names, and the SVG file that their curves are drawn to.
    plot: Option<(Vec<String>, PathBuf)>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        jobs: Vec::new(),
        runs: 5,
        dataset: None,
        against: None,
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
            "--against" => options.against = Some(value()?.into()),
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
        match measure_job(&config, name, job, dataset, &options, &store) {
            Ok(row) => {
                eprintln!("{}", row.line());
                rows.push(row);
            }
            Err(reason) => eprintln!("{name}: skipped: {reason}"),
        }
    }
    // Gates apply only to the job's own data set.
    let gated = options.dataset.is_none() || options.against.is_some();
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
    job_name: &str,
    job: &Job,
    dataset: &str,
    options: &Options,
    store: &Store,
) -> Result<Row, String> {
    let inputs = config.inputs(dataset, options.against.as_deref())?;
    let ours = inputs.fill(&job.run, "ours")?;
    let program = PathBuf::from(env!("CARGO_BIN_EXE_pbfhogg"));
    let peer = match &options.against {
        Some(program) => Some(("other build", program.clone(), &job.run, job.status)),
        None => job.peer.as_ref().and_then(|name| {
            let peer = config.peers.get(name).filter(|peer| peer.is_there())?;
            Some((name.as_str(), peer.path(), &job.against, job.peer_status()))
        }),
    };
    let mut runs = vec![("pbfhogg", program, ours, job.status, Vec::new())];
    if let Some((name, program, arguments, status)) = peer {
        let arguments = inputs.fill(arguments, "theirs")?;
        runs.push((name, program, arguments, status, Vec::new()));
    }
    // The first run of each program warms the page cache and does not count. The order alternates.
    for run in 0..=options.runs {
        for (name, program, arguments, status, usages) in &mut runs {
            let usage = measure::run(program, arguments, *status)?;
            if run > 0 {
                store.add(job_name, dataset, name, &usage, &inputs)?;
                usages.push(usage);
            }
        }
        runs.reverse();
    }
    inputs.clean();
    runs.sort_by_key(|(name, ..)| *name != "pbfhogg");
    let mut medians = runs
        .iter()
        .map(|(name, .., usages)| Some(((*name).to_owned(), Usage::median(usages)?)));
    let (_, ours) = medians.next().flatten().ok_or("no run")?;
    Ok(Row {
        job: job_name.to_owned(),
        about: job.about.clone(),
        dataset: dataset.to_owned(),
        ours,
        peer: medians.next().flatten(),
        gate: match options.against {
            Some(_) => Some(Gate::NOT_SLOWER),
            None => job.gate,
        },
    })
}
