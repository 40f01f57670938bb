//! Chromium without a window, which opens pages and says what is on them.

use super::oracle::chromium;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A browser that is told what to do over a pipe.
pub struct Browser {
    child: Child,
    commands: std::fs::File,
    answers: BufReader<std::fs::File>,
    session: Value,
    last: u64,
    _directory: tempfile::TempDir,
}

impl Browser {
    /// Starts Chromium; `None` if it is not there.
    pub fn start() -> Option<Self> {
        let program = chromium()?;
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (commands, answers) = (path("commands"), path("answers"));
        let made = Command::new("mkfifo").args([&commands, &answers]).status();
        assert!(made.unwrap().success());
        let child = Command::new("sh")
            .args([
                "-c",
                "exec \"$0\" \"$@\" 3<\"$COMMANDS\" 4>\"$ANSWERS\"",
                program,
            ])
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args(["--remote-debugging-pipe", "--window-size=1200,800"])
            .arg(format!("--user-data-dir={}", path("profile")))
            .env("COMMANDS", &commands)
            .env("ANSWERS", &answers)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let commands = std::fs::OpenOptions::new().write(true).open(commands);
        Some(Self {
            child,
            commands: commands.unwrap(),
            answers: BufReader::new(std::fs::File::open(answers).unwrap()),
            session: Value::Null,
            last: 0,
            _directory: directory,
        })
    }

    /// Sends a command of the DevTools protocol, and returns its result.
    pub fn tell(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut command = json!({"id": self.last, "method": method, "params": parameters});
        if self.session.is_string() {
            command["sessionId"] = self.session.clone();
        }
        self.commands
            .write_all(format!("{command}\0").as_bytes())
            .unwrap();
        loop {
            let mut answer = Vec::new();
            self.answers.read_until(0, &mut answer).unwrap();
            answer.pop();
            let mut answer: Value = serde_json::from_slice(&answer).unwrap();
            if answer["id"] == self.last {
                assert_eq!(answer.get("error"), None, "{method}");
                return answer["result"].take();
            }
        }
    }

    /// Opens a page in a new tab.
    pub fn open(&mut self, url: &str) {
        let target = self.tell("Target.createTarget", json!({"url": url}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        self.session = self.tell("Target.attachToTarget", attach)["sessionId"].clone();
    }

    /// Makes the window as large as given, in pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.tell("Emulation.setDeviceMetricsOverride", size);
    }

    /// Keeps a picture of the window in the directory of `PBFHOGG_PICTURES`, if it is set.
    pub fn keep_picture(&mut self, name: &str) {
        if let Some(directory) = std::env::var_os("PBFHOGG_PICTURES") {
            let picture = self.tell("Page.captureScreenshot", json!({"format": "png"}));
            let bytes = STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
            std::fs::write(Path::new(&directory).join(name), bytes).unwrap();
        }
    }

    /// The value of a script.
    pub fn evaluate(&mut self, script: &str) -> Value {
        let result = self.tell("Runtime.evaluate", json!({"expression": script}));
        result["result"]["value"].clone()
    }

    /// Waits until a script is true.
    pub fn wait_for(&mut self, script: &str) {
        let start = Instant::now();
        while self.evaluate(script) != true {
            assert!(start.elapsed() < Duration::from_secs(30), "{script}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Clicks at a place of the window.
    pub fn click(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.tell("Input.dispatchMouseEvent", event);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
