//! The command-line options for rules. Rules apply in the order in which they are given, no matter which options give
//! them.

use crate::cli::args::read_text;
use crate::commands::tags_edit::TagRule;
use anyhow::{Result, anyhow};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::{Path, PathBuf};

/// The two options for rules with the same action, such as --drop and --drop-on.
struct ActionOptions {
    /// The name of the action, and of the option for rules that concern all objects.
    action: &'static str,
    /// The name of the option for rules that concern only objects that match an expression.
    matching: &'static str,
    /// The placeholders that the help shows for the values of the two options, in the order of the fields above.
    values: [&'static str; 2],
    help: &'static str,
}

/// Returns the options for an action.
macro_rules! options {
    ($action:literal, $value:literal, $help:literal) => {
        ActionOptions {
            action: $action,
            matching: concat!($action, "-on"),
            values: [$value, concat!("EXPR:", $value)],
            help: $help,
        }
    };
}

const ACTIONS: [ActionOptions; 7] = [
    options!(
        "drop",
        "KEYS",
        "Remove the tags with these keys, such as 'source,tiger:*'"
    ),
    options!("keep", "KEYS", "Remove the tags with other keys"),
    options!("set", "KEY=VALUE", "Give all objects this tag"),
    options!(
        "default",
        "KEY=VALUE",
        "Give all objects without the key this tag"
    ),
    options!("rename", "OLD NEW", "Replace a key with another one"),
    options!(
        "copy",
        "KEY NEW",
        "Add a key that has the value of another one"
    ),
    options!(
        "replace",
        "KEYS ~REGEX TEXT",
        "Replace the matches of a regular expression in values"
    ),
];

/// The id of the option for files of rules.
const FILE: &str = "rules";
/// The id of the option for a rule.
const RULE: &str = "rule";

/// Rules on the command line.
#[derive(Debug, Clone, Default)]
pub struct RuleArgs(Vec<GivenRule>);

/// A rule, or a file of rules.
#[derive(Debug, Clone)]
enum GivenRule {
    Text(String),
    /// A rule for the objects that match an expression: the name of the action, and `EXPRESSION:ARGUMENTS`.
    Matching(&'static str, String),
    File(PathBuf),
}

impl RuleArgs {
    /// Returns all rules, in the order in which they were given.
    pub fn parse(&self) -> Result<Vec<TagRule>> {
        let mut rules = Vec::new();
        for given in &self.0 {
            match given {
                GivenRule::Text(text) => rules.push(parse(text)?),
                GivenRule::Matching(action, text) => {
                    // The first colon that is followed by a space ends the expression, so that the expression may
                    // contain other colons. Without such a colon, the first colon ends the expression.
                    let parts = text.split_once(": ").or_else(|| text.split_once(':'));
                    let (expression, rest) = parts.ok_or_else(|| {
                        let column = text.chars().count() + 1;
                        let expected = format!("':' and the arguments of {action}");
                        anyhow!("--{action}-on '{text}', column {column}: expected {expected}")
                    })?;
                    rules.push(parse(&format!(
                        "{expression}: {action} {}",
                        rest.trim_start()
                    ))?);
                }
                GivenRule::File(path) => rules.extend(read_rules(path)?),
            }
        }
        Ok(rules)
    }
}

fn parse(text: &str) -> Result<TagRule> {
    TagRule::parse(text).map_err(anyhow::Error::msg)
}

/// Reads a file of rules, one per line; `-` is standard input. An error names the file and the line.
pub fn read_rules(path: &Path) -> Result<Vec<TagRule>> {
    let rules = TagRule::parse_lines(&read_text(path)?);
    Ok(rules.map_err(|cause| crate::Error::file(path, cause))?)
}

impl clap::Args for RuleArgs {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new(FILE)
            .short('e')
            .long(FILE)
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .action(ArgAction::Append)
            .help("Read rules from FILE, one per line; # at the start of a word begins a comment");
        let rule = Arg::new(RULE)
            .long(RULE)
            .value_name("RULE")
            .action(ArgAction::Append)
            .help("Apply a rule, such as 'w/highway: keep highway,name,ref'");
        let mut args = vec![file, rule];
        let option = |name: &'static str, value: &'static str| {
            let arg = Arg::new(name).long(name).value_name(value);
            arg.action(ArgAction::Append).allow_hyphen_values(true)
        };
        for options in ACTIONS {
            let [value, value_with_expression] = options.values;
            args.push(option(options.action, value).help(options.help));
            args.push(
                option(options.matching, value_with_expression).help(format!(
                    "The same as --{} for the objects that match EXPR",
                    options.action
                )),
            );
        }
        let args = args.into_iter().map(|arg| arg.help_heading("Rules"));
        command.args(args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for RuleArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Vec::new();
        let indices = |id: &str| matches.indices_of(id).into_iter().flatten();
        let files = matches.get_many::<PathBuf>(FILE).into_iter().flatten();
        given.extend(indices(FILE).zip(files.cloned().map(GivenRule::File)));
        let texts = |id: &str| matches.get_many::<String>(id).into_iter().flatten();
        given.extend(indices(RULE).zip(texts(RULE).cloned().map(GivenRule::Text)));
        for ActionOptions {
            action, matching, ..
        } in ACTIONS
        {
            let rules = texts(action).map(|text| GivenRule::Text(format!("{action} {text}")));
            given.extend(indices(action).zip(rules));
            let rules = texts(matching).map(|text| GivenRule::Matching(action, text.clone()));
            given.extend(indices(matching).zip(rules));
        }
        given.sort_by_key(|(index, _)| *index);
        Ok(Self(given.into_iter().map(|(_, rule)| rule).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
