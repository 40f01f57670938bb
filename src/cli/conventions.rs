//! The conventions for each of the two names of the program. If the program is started as `osmium`, or with `osmium` as
//! the first argument, it follows the conventions of that tool.
//!
//! [`Conventions`] holds every decision that depends on the name. Each subcommand passes decisions on as options of its
//! command, so that no command has to know under which name it runs.

use crate::Disorder;
use crate::commands::sort::{Dedupe, EqualVersions};
use crate::engine::InheritedFields;
use crate::geometry::{Antimeridian, CornerOrder};
use crate::osm::Unversioned;
use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Declares the decisions that depend on the name of the program. Each row ends with two values: the one under the name
/// `pbfhogg`, then the one under the name `osmium`.
macro_rules! conventions {
    ($($(#[$about:meta])* $visibility:vis $decision:ident: $type:ty = $pbfhogg:expr, $osmium:expr;)*) => {
        /// The decisions that depend on the name of the program.
        #[derive(Debug)]
        pub struct Conventions {
            $($(#[$about])* $visibility $decision: $type,)*
        }

        /// The conventions of the name `pbfhogg`.
        pub const PBFHOGG: Conventions = Conventions { $($decision: $pbfhogg,)* };

        /// The conventions of the name `osmium`.
        const OSMIUM: Conventions = Conventions { $($decision: $osmium,)* };
    };
}

conventions! {
    /// The name that the program uses for itself.
    pub name: &'static str = "pbfhogg", "osmium";
    /// The exit status after an error, except errors in the command line.
    pub error_status: u8 = 2, 1;
    /// Whether warnings are printed without --verbose.
    pub has_warnings: bool = true, false;
    /// Whether unknown options of a format and unknown header fields are ignored.
    pub ignores_unknown_options: bool = false, true;
    /// Whether a command without --output needs --output-format.
    pub needs_format: bool = false, true;
    /// Whether a command without an input file reads standard input.
    pub reads_stdin: bool = false, true;
    /// Whether certain data is written only if the format or its options request the data. In text formats, this
    /// concerns the locations of nodes in ways, the attribute `visible` and the replication state. In PBF files, it
    /// concerns the locations of nodes in ways and the history.
    pub is_plain_by_default: bool = false, true;
    /// How `merge` treats several versions of an object.
    pub merged_versions: Dedupe = Dedupe::HighestVersion, Dedupe::EachVersion(EqualVersions::First);
    /// How `merge-changes --simplify` ranks a change that has no version.
    pub unversioned_changes: Unversioned = Unversioned::Newest, Unversioned::Oldest;
    /// Whether `sort`, and `merge` of several inputs, write the changesets of text inputs.
    pub sorts_changesets: bool = true, false;
    /// Whether `merge-changes` sorts changes by kind, id and version.
    pub sorts_changes: bool = false, true;
    /// The treatment of inputs that are not in order.
    pub disorder: Disorder = Disorder::Accept, Disorder::Refuse;
    /// Whether `merge` accepts inputs that are not in order, and reports the disorder.
    pub tells_disorder: bool = false, true;
    /// Whether `apply-changes --locations-on-ways` adds locations to a base whose ways have none.
    pub locates_base: bool = false, true;
    /// Whether `apply-changes` and `merge-changes` accept data files as changes, and `cat`, `sort` and `merge` accept
    /// data and changes together.
    pub merges_data: bool = false, true;
    /// Whether `cat` and `sort` of several files leave all locations in ways as they are.
    pub keeps_way_locations: bool = false, true;
    /// Whether `diff` prints a changed object as one removed and one added object.
    pub diffs_in_pairs: bool = false, true;
    /// Whether `add-locations-to-ways` keeps untagged nodes that are members of relations.
    pub keeps_member_nodes: bool = true, false;
    /// Whether `add-locations-to-ways` fails if a node is missing and the user has not asked to ignore missing nodes.
    /// Also whether `getid` reports a node as missing although ways store its location.
    pub needs_all_nodes: bool = false, true;
    /// Whether `export` makes a line and an area of each closed way.
    pub exports_twice: bool = false, true;
    /// Whether `export` writes all tags of an object to text, even if several have the same key.
    pub keeps_repeated_keys: bool = false, true;
    /// Whether `export` writes areas after all points and lines.
    pub exports_areas_last: bool = false, true;
    /// Whether `export -i none` looks up no nodes, so that ways without locations are left out.
    pub takes_none_for_no_index: bool = false, true;
    /// Whether `export --stop-on-error`, after it has written all features, fails if relations are incomplete.
    pub stops_on_incomplete: bool = false, true;
    /// Whether `export` makes lines of routes.
    pub exports_routes: bool = true, false;
    /// How `export` and commands with a region treat lines and areas that cross the antimeridian, and points on the
    /// antimeridian.
    pub antimeridian: Antimeridian = Antimeridian::Cut, Antimeridian::Keep;
    /// The index types that `add-locations-to-ways` prints, one per line.
    pub index_types: &'static str = "auto\ndense\nexternal\nsparse\n",
        "dense_file_array\ndense_mem_array\ndense_mmap_array\nflex_mem\nsparse_file_array\nsparse_mem_array\n\
         sparse_mem_map\nsparse_mmap_array\n";
    /// Whether `check-refs` prints its report to standard error, worded like that of osmium.
    pub reports_like_osmium: bool = false, true;
    /// Whether `apply-changes`, even without --redact, replaces a version in a history file with the same version in a
    /// change file.
    pub redacts_history: bool = false, true;
    /// Whether `apply-changes` without --with-history requires that both the base and the output have names of history
    /// files. The requirement applies if the base has such a name or if --redact is given.
    pub needs_history_names: bool = false, true;
    /// Whether `show` colours its output even if it goes to a file or pipe.
    pub always_colors: bool = false, true;
    /// Whether a change counts as a creation if its version is 1. If `false`, a change counts as a creation only if the
    /// command knows that the object is new.
    pub creates_version_1: bool = false, true;
    /// Whether each name of an XML format that is given for an input, such as `osm`, stands for both OSM XML and
    /// OsmChange.
    pub reads_xml_by_any_name: bool = false, true;
    /// Whether `tags-filter`, `extract`, `renumber` and `time-filter` treat the objects of a change file like those of
    /// other files.
    pub filters_changes_as_data: bool = false, true;
    /// Whether expressions can only test tags. Then `@version>1` is a key instead of a condition on the metadata, and
    /// `&` and `~` have no special meaning.
    pub only_tag_expressions: bool = false, true;
    /// Whether every `#` in a file of expressions begins a comment. If `false`, a `#` within a word is a part of the
    /// expression, such as `colour=#ff0000`.
    pub cuts_at_every_hash: bool = false, true;
    /// Whether commands for which `--force` has no meaning accept and ignore it. Scripts pass `--force` to allow a file
    /// without an index, but every command allows such files in any case.
    pub ignores_force: bool = true, false;
    /// The accepted order of the two corners of a bounding box.
    pub corners: CornerOrder = CornerOrder::Southwest, CornerOrder::Any;
    /// The header fields that `cat` copies if it has several inputs.
    pub concatenated_fields: InheritedFields = InheritedFields::All, InheritedFields::Needed;
    /// The function that returns the header fields that a command copies from its input.
    inherited: fn(command: &str) -> InheritedFields = |_| InheritedFields::All, inherited_by_osmium;
}

/// Returns the header fields that a command of osmium copies from its input.
fn inherited_by_osmium(command: &str) -> InheritedFields {
    match command {
        "apply-changes" | "derive-changes" | "extract" | "merge" | "merge-changes" => {
            InheritedFields::Needed
        }
        "sort" => InheritedFields::BboxAndRequired,
        _ => InheritedFields::All,
    }
}

impl Conventions {
    /// Returns the header fields that a command copies from its input.
    pub fn inherited(&self, command: &str) -> InheritedFields {
        (self.inherited)(command)
    }

    /// Adapts the arguments of the program to these conventions.
    pub fn adapt(&'static self, mut program: clap::Command) -> clap::Command {
        if self.reads_stdin {
            program = with_stdin_default(program);
        }
        if self.ignores_force {
            program = with_force_option(program);
        }
        program
    }
}

/// A function that parses the value of an argument under given conventions.
pub type ParseValue<T> = fn(&Conventions, &str) -> Result<T, String>;

/// Returns a function that parses a value under the conventions of the name `pbfhogg`.
pub fn parse_with<T>(
    parse: ParseValue<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: 'static,
{
    move |text: &str| parse(&PBFHOGG, text)
}

/// If the values of an argument have the type `T`, makes the argument parse them under the given conventions.
pub fn with_values<T: Clone + Send + Sync + 'static>(
    arg: clap::Arg,
    conventions: &'static Conventions,
    parse: ParseValue<T>,
) -> clap::Arg {
    if arg.get_value_parser().type_id() == TypeId::of::<T>() {
        arg.value_parser(move |text: &str| parse(conventions, text))
    } else {
        arg
    }
}

/// Makes standard input the default for the input files of commands.
fn with_stdin_default(mut command: clap::Command) -> clap::Command {
    for (name, input) in [
        ("add-locations-to-ways", "inputs"),
        ("cat", "inputs"),
        ("changeset-filter", "input"),
        ("check-refs", "input"),
        ("create-locations-index", "input"),
        ("extract", "input"),
        ("fileinfo", "input"),
        ("merge", "inputs"),
        ("merge-changes", "inputs"),
        ("renumber", "input"),
        ("show", "input"),
        ("sort", "inputs"),
    ] {
        command = command.mut_subcommand(name, |command| {
            command.mut_arg(input, |arg| arg.required(false).default_value("-"))
        });
    }
    command
}

/// Adds `--force`, which is ignored, to each command that does not define it.
fn with_force_option(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|command| {
        let command = with_force_option(command);
        let is_known = command.get_arguments().any(|arg| {
            let mut aliases = arg.get_all_aliases().into_iter().flatten();
            arg.get_long() == Some("force") || aliases.any(|alias| alias == "force")
        });
        if is_known {
            return command;
        }
        let force = clap::Arg::new("force").long("force").hide(true);
        command.arg(force.action(clap::ArgAction::Count))
    })
}

/// Selects the conventions from the command line. Also returns the command line without `osmium` as its first argument.
pub fn choose(mut args: Vec<OsString>) -> (&'static Conventions, Vec<OsString>) {
    let program = args.first().map(Path::new);
    let is_link = program.and_then(Path::file_stem) == Some(OsStr::new(OSMIUM.name));
    let is_word = args.get(1).is_some_and(|word| word == OSMIUM.name);
    if is_word && !is_link {
        args.remove(1);
    }
    let is_osmium = is_link || is_word;
    (if is_osmium { &OSMIUM } else { &PBFHOGG }, args)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent_under_both_names() {
        super::super::Cli::command().debug_assert();
        for conventions in [&PBFHOGG, &OSMIUM] {
            super::super::program(conventions).debug_assert();
        }
    }

    #[test]
    fn force_is_an_option_that_may_come_anywhere_after_the_command() {
        for typed in [
            "sort --force a.pbf",
            "sort a.pbf --force --force",
            "inspect tags --force a.pbf",
            "cat --force a.pbf",
        ] {
            let words = || ["pbfhogg"].into_iter().chain(typed.split(' '));
            let command = super::super::Cli::command();
            let is_known = command.clone().try_get_matches_from(words()).is_ok();
            assert_eq!(is_known, typed.starts_with("cat"), "{typed}");
            let found = with_force_option(command).try_get_matches_from(words());
            assert!(found.is_ok(), "{typed}: {found:?}");
        }
        // After `--`, the word `--force` is a file name.
        let words = ["pbfhogg", "sort", "--", "--force"];
        let found = with_force_option(super::super::Cli::command()).get_matches_from(words);
        let (_, found) = found.subcommand().unwrap();
        assert_eq!(found.get_count("force"), 0);
        assert_eq!(
            found
                .get_many::<std::path::PathBuf>("inputs")
                .unwrap()
                .len(),
            1
        );
    }
}
