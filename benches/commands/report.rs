//! Tables of results, gates, the history of all runs, and plots of the history.

use crate::config::{Gate, Inputs};
use crate::measure::{Usage, median};
use plotters::prelude::*;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The medians of a job.
pub struct Row {
    pub job: String,
    pub about: String,
    pub dataset: String,
    pub ours: Usage,
    pub peer: Option<(String, Usage)>,
    pub gate: Option<Gate>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.peer
            .as_ref()
            .map(|(_, theirs)| theirs.wall / self.ours.wall)
    }

    /// The reason why the job fails its gate; `None` if it passes or has no gate.
    pub fn shortfall(&self) -> Option<String> {
        let gate = self.gate?;
        if self.ours.peak_mb > gate.memory_mb {
            return Some(format!(
                "{}: {:.0} MB, at most {:.0} are allowed",
                self.job, self.ours.peak_mb, gate.memory_mb
            ));
        }
        let ratio = self.ratio().filter(|ratio| *ratio < gate.ratio)?;
        Some(format!(
            "{}: {ratio:.3} times its peer, at least {} is asked for",
            self.job, gate.ratio
        ))
    }

    pub fn line(&self) -> String {
        let peer = match (&self.peer, self.ratio()) {
            (Some((name, theirs)), Some(ratio)) => format!(
                "{name} {:.2} s ({:.2} s cpu), ratio {ratio:.3}",
                theirs.wall, theirs.cpu
            ),
            _ => "no peer".into(),
        };
        let ours = &self.ours;
        format!(
            "{} on {}: {:.2} s ({:.2} s cpu), {:.0} MB; {peer}",
            self.job, self.dataset, ours.wall, ours.cpu, ours.peak_mb
        )
    }

    fn cells(&self) -> Vec<String> {
        let ours = &self.ours;
        let (peer, ratio, asked) = match (&self.peer, self.ratio()) {
            (Some((name, theirs)), Some(ratio)) => (
                format!(
                    "{name} {:.2} ({:.2}), {:.0} MB",
                    theirs.wall, theirs.cpu, theirs.peak_mb
                ),
                format!("{ratio:.2}"),
                self.gate
                    .map_or(String::new(), |gate| format!("{}", gate.ratio)),
            ),
            _ => ("–".into(), "–".into(), String::new()),
        };
        vec![
            format!("{} ({})", self.about, self.dataset),
            format!("{:.2} ({:.2})", ours.wall, ours.cpu),
            format!("{:.0}", ours.peak_mb),
            format!("{:.0} / {:.0}", ours.read_mb, ours.written_mb),
            peer,
            ratio,
            asked,
        ]
    }
}

const TITLES: [&str; 7] = [
    "job",
    "s (cpu s)",
    "MB",
    "MB read / written",
    "peer: s (cpu s)",
    "ratio",
    "gate",
];

pub fn table(rows: &[Row]) -> String {
    let mut lines = vec![TITLES.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(Row::cells));
    let widths: Vec<usize> = (0..TITLES.len())
        .map(|column| {
            lines
                .iter()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let pad = |(cell, width): (&String, &usize)| {
        format!("{cell}{}", " ".repeat(width - cell.chars().count()))
    };
    lines
        .iter()
        .map(|line| {
            line.iter()
                .zip(&widths)
                .map(pad)
                .collect::<Vec<_>>()
                .join("  ")
                .trim_end()
                .to_owned()
                + "\n"
        })
        .collect()
}

pub fn markdown(rows: &[Row], peers: &[String]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = format!(
        "{}; {}; commit {}.\n\n",
        machine(),
        peers.join("; "),
        commit()
    );
    out += &line(TITLES.map(str::to_owned).to_vec());
    out += &line(vec!["---".into(); TITLES.len()]);
    rows.iter().for_each(|row| out += &line(row.cells()));
    out
}

/// The processor model, the number of cores, and the memory.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (cpu, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default()
        .trim_start_matches(['\t', ' ', ':'])
        .to_owned();
    let cores = cpu
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let kb: f64 = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse().ok())
        .unwrap_or(0.0);
    format!("{model}, {cores} cores, {:.0} GB", kb / 1e6)
}

/// The trimmed standard output of a command; empty if it cannot be run.
fn said_by(command: &str, args: &[&str]) -> String {
    let output = Command::new(command).args(args).output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

fn commit() -> String {
    said_by("git", &["describe", "--always", "--dirty"])
}

/// A run in the history file, which has one line of JSON per run.
#[derive(serde::Serialize, serde::Deserialize)]
struct Run {
    at: String,
    machine: String,
    commit: String,
    job: String,
    dataset: String,
    input_hash: Option<String>,
    input_bytes: u64,
    program: String,
    wall: f64,
    cpu: f64,
    peak_mb: f64,
    read_mb: f64,
    written_mb: f64,
}

/// The history file of all runs, in the working directory.
pub struct Store {
    path: PathBuf,
    machine: String,
    commit: String,
}

impl Store {
    pub fn open(directory: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(Self {
            path: directory.join("runs.jsonl"),
            machine: machine(),
            commit: commit(),
        })
    }

    fn failed(&self, error: impl std::fmt::Display) -> String {
        format!("{}: {error}", self.path.display())
    }

    pub fn add(
        &self,
        job: &str,
        dataset: &str,
        program: &str,
        usage: &Usage,
        inputs: &Inputs,
    ) -> Result<(), String> {
        let run = Run {
            at: said_by("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
            machine: self.machine.clone(),
            commit: self.commit.clone(),
            job: job.to_owned(),
            dataset: dataset.to_owned(),
            input_hash: Some(inputs.hash.clone()),
            input_bytes: inputs.bytes,
            program: program.to_owned(),
            wall: usage.wall,
            cpu: usage.cpu,
            peak_mb: usage.peak_mb,
            read_mb: usage.read_mb,
            written_mb: usage.written_mb,
        };
        let line = serde_json::to_string(&run).map_err(|error| self.failed(error))? + "\n";
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|error| self.failed(error))
    }

    /// Returns the runs of pbfhogg on this machine.
    fn runs(&self) -> Result<Vec<Run>, String> {
        let text = match std::fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| self.failed(error))?,
        };
        let runs = text.lines().map(serde_json::from_str::<Run>);
        let runs = runs
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| self.failed(error))?;
        let is_ours = |run: &Run| run.machine == self.machine && run.program == "pbfhogg";
        Ok(runs.into_iter().filter(is_ours).collect())
    }

    /// Draws wall time and peak memory of `jobs` over the length of their input. Each curve is made from the runs on
    /// this machine of the commit on which its job was last measured.
    pub fn plot(&self, jobs: &[String], path: &Path) -> Result<(), String> {
        let runs = self.runs()?;
        let curves: Vec<Curve> = jobs.iter().map(|job| curve(job, &runs)).collect();
        if let Some(missing) = curves.iter().find(|curve| curve.walls.is_empty()) {
            return Err(format!("no runs of {} on this machine yet", missing.job));
        }
        draw(&curves, path).map_err(|error| error.to_string())
    }
}

/// The medians of a job for each input length, from the runs of the commit on which the job was last measured.
fn curve(job: &str, runs: &[Run]) -> Curve {
    let runs = || runs.iter().filter(|run| run.job == job);
    let commit = runs().next_back().map(|run| run.commit.as_str());
    let mut by_size: BTreeMap<u64, [Vec<f64>; 2]> = BTreeMap::new();
    for run in runs().filter(|run| Some(run.commit.as_str()) == commit) {
        let [walls, peaks] = by_size.entry(run.input_bytes).or_default();
        walls.push(run.wall);
        peaks.push(run.peak_mb);
    }
    let points = |which: usize| -> Vec<(f64, f64)> {
        by_size
            .iter()
            .map(|(bytes, values)| {
                (
                    *bytes as f64 / 1e6,
                    median(values[which].clone()).unwrap_or_default(),
                )
            })
            .collect()
    };
    Curve {
        job: job.to_owned(),
        walls: points(0),
        peaks: points(1),
    }
}

/// The curves of one job: pairs of input length in MB and median, of wall time in seconds and of peak memory in MB.
struct Curve {
    job: String,
    walls: Vec<(f64, f64)>,
    peaks: Vec<(f64, f64)>,
}

fn draw(curves: &[Curve], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    type Points = fn(&Curve) -> &[(f64, f64)];
    let halves: [(&str, Points); 2] = [
        ("seconds", |curve| &curve.walls),
        ("peak memory, MB", |curve| &curve.peaks),
    ];
    let root = SVGBackend::new(path, (900, 380)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, (title, points)) in root.split_evenly((1, 2)).iter().zip(halves) {
        let most = |value: fn(&(f64, f64)) -> f64| {
            let all = curves.iter().flat_map(points).map(value);
            all.fold(0.0, f64::max) * 1.15
        };
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(48)
            .build_cartesian_2d(0.0..most(|point| point.0), 0.0..most(|point| point.1))?;
        chart.configure_mesh().x_desc("input, MB").draw()?;
        for (index, curve) in curves.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            let line = points(curve).iter().copied();
            chart
                .draw_series(LineSeries::new(line.clone(), &colour))?
                .label(&curve.job)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
            chart.draw_series(line.map(|point| Circle::new(point, 3, colour.filled())))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .draw()?;
    }
    root.present()?;
    Ok(())
}
