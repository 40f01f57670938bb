//! The state of one run of a command line. Each command gets a reference to this state.

use super::conventions::Conventions;
use crate::Context;
use crate::engine::InheritedFields;
use crate::error::FileResult;
use crate::formats::TextOutput;
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;

/// One run of a command line.
pub struct Session {
    /// The decisions that depend on the name of the program.
    pub conventions: &'static Conventions,
    /// The name of the command.
    command: String,
    /// If another program runs the command through [`call`](super::call()), the context of that caller, and the text
    /// printed so far, which the caller gets in the end.
    caller: Option<(Context, RefCell<String>)>,
    /// The percentage by which an output may be smaller than the file that it replaces; `None` without a limit.
    pub max_shrink: Option<u8>,
    /// The file for --stats, which is open from the start of the run. A run that fails removes it.
    pub stats: RefCell<Option<TextOutput>>,
}

impl Session {
    /// Creates the state of a run. `caller` is the context of the caller in a [`call`](super::call()), otherwise
    /// `None`.
    pub fn new(
        conventions: &'static Conventions,
        matches: &clap::ArgMatches,
        caller: Option<&Context>,
    ) -> Self {
        Self {
            conventions,
            command: matches.subcommand_name().unwrap_or_default().to_owned(),
            caller: caller.map(|ctx| (ctx.clone(), RefCell::default())),
            max_shrink: max_shrink(matches),
            stats: RefCell::default(),
        }
    }

    /// Returns the header fields that the command copies from its input.
    pub fn inherited(&self) -> InheritedFields {
        self.conventions.inherited(&self.command)
    }

    /// Whether the command is called by another program, which uses standard output and standard error itself.
    pub const fn is_call(&self) -> bool {
        self.caller.is_some()
    }

    /// Connects `ctx` to the caller, if there is one. `ctx` is then cancelled together with the context of the caller.
    /// Unless `has_bar` is set, the messages of `ctx` go to the observer of the caller.
    pub fn connect_to_caller(&self, ctx: &mut Context, has_bar: bool) {
        if let Some((caller, _)) = &self.caller {
            ctx.cancellation = caller.cancellation.clone();
            if !has_bar {
                ctx.observer = caller.observer.clone();
            }
        }
    }

    /// Prints text to standard output, or keeps it for the caller. If the reader has closed the pipe, returns
    /// [`Error::ClosedPipe`], after which the program exits successfully.
    pub fn print(&self, text: &str) -> anyhow::Result<()> {
        if let Some((_, printed)) = &self.caller {
            printed.borrow_mut().push_str(text);
            return Ok(());
        }
        let written = std::io::stdout().write_all(text.as_bytes());
        let path = Path::new("standard output");
        Ok(written.for_path(path, "cannot write")?)
    }

    /// Prints to standard error, unless another program called the command.
    pub fn print_to_stderr(&self, text: &str) {
        if !self.is_call() {
            print_to_stderr(text);
        }
    }

    /// Ends the run. Returns the text that was kept for the caller.
    pub fn into_printed(self) -> String {
        self.caller
            .map(|(_, printed)| printed.into_inner())
            .unwrap_or_default()
    }
}

/// Returns the value of --max-shrink of the command.
fn max_shrink(matches: &clap::ArgMatches) -> Option<u8> {
    let (_, matches) = matches.subcommand()?;
    let given = matches.try_get_one("max_shrink").ok().flatten();
    given.copied().or_else(|| max_shrink(matches))
}

/// Prints to standard error. Ignores a failure, which could not be reported anywhere else.
pub fn print_to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
