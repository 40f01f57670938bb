//! `update --exec` after a run whose command has not succeeded: other runs, damaged records, and outputs.

use crate::common::kills::names;
use crate::common::stderr;
use crate::common::town::{NOTE, Town};
use pbfhogg::commands::update::{self, Exec, Goal, LocalFiles, Options};
use pbfhogg::{Context, Observer, OutputOptions, OutputTarget};
use std::fs;
use std::sync::Arc;

/// The record of the step whose command is pending.
const RECORD: &str = ".town.osm.pbf.pbfhogg-exec";

#[test]
fn a_pending_command_follows_updates_without_it_once_for_all() {
    let town = Town::new();
    town.publisher.publish(1);
    let tiles = ["--expire-tiles", "8", "--expire-output", "tiles.txt"];
    assert_eq!(
        town.update(&[&tiles[..], &["--exec", "exit 1"]].concat()).0,
        3
    );
    // Updates without the command go on, and say what they leave.
    for day in [1, 2, 3] {
        town.publisher.publish(day);
        let (status, output) = town.update(&[]);
        let said = stderr(&output);
        assert_eq!((status, town.day()), (0, day), "{said}");
        assert!(
            said.contains("from sequence number 0 to 1 is pending"),
            "{said}"
        );
        assert!(said.contains("--exec") && said.contains(RECORD), "{said}");
    }
    // The command follows the whole way, whether there is news or not. No outputs describe this way.
    let failing = format!("{NOTE}; exit 4");
    assert_eq!(town.update(&["--exec", &failing]).0, 3);
    let exec = format!("test -z \"$PBFHOGG_EXPIRED_TILES\" || exit 5; {NOTE}");
    let (status, output) = town.update(&["--exec", &exec]);
    let said = stderr(&output);
    assert_eq!(status, 0, "{said}");
    assert!(
        said.contains("once for all that has happened since 0"),
        "{said}"
    );
    town.publisher.publish(4);
    assert_eq!(town.update(&["--exec", NOTE]).0, 0);
    assert_eq!(town.noted(), [(0, 3), (0, 3), (3, 4)]);
    assert_eq!(
        names(&town.directory),
        ["noted", "tiles.txt", "town.osm.pbf"]
    );
}

#[test]
fn the_command_of_an_update_that_was_not_made_is_not_pending() {
    for more in [&[][..], &["--exec", NOTE][..]] {
        let town = Town::new();
        town.publisher.publish(1);
        assert_eq!(town.update(&["--exec", "exit 1"]).0, 3);
        // The file is as it was before the update, as if the run had ended before it replaced the file.
        fs::copy(town.publisher.data(0), town.path("town.osm.pbf")).unwrap();
        let (status, output) = town.update(more);
        let said = stderr(&output);
        assert_eq!((status, town.day()), (0, 1), "{said}");
        assert!(!said.contains("pending"), "{said}");
        assert!(!town.path(RECORD).exists());
        let expected: &[(usize, usize)] = &[(0, 1)][usize::from(more.is_empty())..];
        assert_eq!(town.noted(), expected);
    }
}

#[test]
fn a_pending_command_gets_the_outputs_of_its_own_update() {
    let town = Town::new();
    town.publisher.publish(1);
    let first = ["--augmented-diff", "run.adiff", "--exec", "exit 1"];
    assert_eq!(town.update(&first).0, 3);
    town.publisher.publish(2);
    let exec = "echo \"${PBFHOGG_AUGMENTED_DIFF##*/}+${PBFHOGG_EXPIRED_TILES##*/}\" >> outputs; \
                test -e \"$PBFHOGG_AUGMENTED_DIFF$PBFHOGG_EXPIRED_TILES\"";
    let tiles = ["--expire-tiles", "8", "--expire-output", "tiles.txt"];
    let (status, output) = town.update(&[&tiles[..], &["--exec", exec]].concat());
    assert_eq!(status, 0, "{}", stderr(&output));
    let outputs = fs::read_to_string(town.path("outputs")).unwrap();
    assert_eq!(outputs, "run.adiff+\n+tiles.txt\n");
}

#[test]
fn a_damaged_record_does_not_hide_a_pending_command() {
    let town = Town::new();
    town.publisher.publish(1);
    assert_eq!(town.update(&[]).0, 0);
    let exec = "echo \"+$PBFHOGG_SEQUENCE_BEFORE+$PBFHOGG_SEQUENCE\" >> steps";
    for text in ["{\"server\":", "", "{}", "null", "\u{0}\u{0}"] {
        fs::write(town.path(RECORD), text).unwrap();
        for (more, expected) in [
            (&[][..], 0),
            (&["--exec", "exit 1"][..], 3),
            (&["--exec", exec][..], 0),
        ] {
            let (status, output) = town.update(more);
            let said = stderr(&output);
            assert_eq!(status, expected, "{text}: {said}");
            assert!(said.contains(RECORD) && said.contains("damaged"), "{said}");
        }
        let steps = fs::read_to_string(town.path("steps")).unwrap();
        assert_eq!(steps, "++1\n");
        fs::remove_file(town.path("steps")).unwrap();
        assert_eq!(names(&town.directory), ["town.osm.pbf"], "{text}");
    }
    // Something else in the place of the record stops a run that would begin with the command.
    fs::create_dir(town.path(RECORD)).unwrap();
    for (more, expected) in [(&[][..], 0), (&["--exec", exec][..], 2)] {
        let (status, output) = town.update(more);
        assert_eq!(status, expected);
        assert!(stderr(&output).contains(RECORD), "{output:?}");
    }
    assert_eq!(names(&town.directory), [RECORD, "town.osm.pbf"]);
}

/// Makes another update after the file was replaced, before the command runs.
struct Between {
    town: Arc<Town>,
    more: &'static [&'static str],
    status: i32,
}

impl Observer for Between {
    fn debug(&self, message: &str) {
        if message.ends_with("the command follows") {
            self.town.publisher.publish(2);
            let (status, output) = self.town.update(self.more);
            assert_eq!(status, self.status, "{}", stderr(&output));
        }
    }
}

#[test]
fn a_command_does_not_follow_an_update_that_another_run_has_taken_over() {
    // The other run follows the first update, and fails to follow its own. Or it has no command.
    const OTHER: &str =
        "echo \"$PBFHOGG_SEQUENCE_BEFORE $PBFHOGG_SEQUENCE\" >> noted; test $PBFHOGG_SEQUENCE = 1";
    const WITH_COMMAND: &[&str] = &["--exec", OTHER];
    const WITHOUT: &[&str] = &[];
    let cases = [
        (WITH_COMMAND, 3, &[(0, 1), (1, 2)][..]),
        (WITHOUT, 0, &[(0, 2)][..]),
    ];
    for (more, status, noted) in cases {
        let town = Arc::new(Town::new());
        town.publisher.publish(1);
        let path = town.path("town.osm.pbf");
        let output = OutputOptions::new(OutputTarget::File {
            path: path.clone(),
            overwrite: true,
        });
        let command = format!("cd '{}'; {NOTE}", town.directory.display());
        let options = Options::new(&path, Goal::File(output))
            .servers(vec![town.publisher.server()])
            .max_age(9999 * 86_400)
            .exec(Some(Exec::new(command)));
        let between = Between {
            town: town.clone(),
            more,
            status,
        };
        let ctx = Context::default().with_observer(Arc::new(between));
        let summary = update::run(&options, &LocalFiles, &ctx).unwrap();
        // The command has run if the other run has left the record of this one.
        let is_left = status == 0;
        let executed = summary.exec.map(|executed| executed.status);
        assert_eq!(executed, is_left.then_some(Some(0)));
        assert_eq!(town.noted(), noted);
        // The record of the other run stays, and is followed.
        assert_eq!(town.path(RECORD).exists(), !is_left);
        assert_eq!((town.update(&["--exec", NOTE]).0, town.day()), (0, 2));
        let after = town.noted();
        assert_eq!(after.len(), noted.len() + usize::from(!is_left));
        assert_eq!(after.last(), noted.last());
    }
}
