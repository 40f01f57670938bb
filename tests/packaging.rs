//! The manual pages and completions that a package has beside the program.

use crate::common::{run_fail, run_ok};
use std::process::Command;

#[test]
fn bash_completes_commands_and_options() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("pbfhogg.bash");
    std::fs::write(&script, run_ok(&[&"completions", &"bash"]).stdout).unwrap();
    let complete = |words: &[&str]| {
        let line = format!(
            "source {}; COMP_WORDS=(pbfhogg {words}); COMP_CWORD={count}; \
             _pbfhogg pbfhogg '{last}' '{before}'; echo \"${{COMPREPLY[*]}}\"",
            script.display(),
            words = words.join(" "),
            count = words.len(),
            last = words.last().unwrap(),
            before = words.iter().rev().nth(1).unwrap_or(&"pbfhogg"),
        );
        let output = Command::new("bash").args(["-c", &line]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete(&["insp"]), "inspect");
    assert_eq!(complete(&["extract", "--sma"]), "--smart");
    assert_eq!(complete(&["completions", "z"]), "zsh");
    // Topics of help, and values of options that also take others.
    assert_eq!(complete(&["help", "expr"]), "expressions");
    assert_eq!(complete(&["help", "extr"]), "extract");
    assert_eq!(complete(&["cat", "-f", "osm.b"]), "osm.bz2");
    assert_eq!(
        complete(&["export", "-f", "geojsons"]),
        "geojsonseq geojsonseq.gz"
    );
    assert_eq!(complete(&["export", "--theme", "roa"]), "roads");
}

#[test]
fn each_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run_ok(&[&"completions", &shell]).stdout;
        let script = String::from_utf8(script).unwrap();
        for command in ["apply-changes", "build-geocode-index", "tags-filter"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    let message = run_fail(&[&"completions", &"cmd"]);
    assert!(message.contains("cmd"), "{message}");
}

#[test]
fn each_command_has_a_manual_page_with_its_examples() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("share/man/man1");
    run_ok(&[&"man", &"-o", &pages]);
    let read = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    for command in ["cat", "extract", "inspect-tags", "update", "man"] {
        let page = read(&format!("pbfhogg-{command}.1"));
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH EXAMPLES\n.nf\n"] {
            assert!(page.contains(section), "{command}: {section}\n{page}");
        }
    }
    let page = read("pbfhogg-extract.1");
    assert!(page.contains("\npbfhogg extract \\-b"), "{page}");
    let whole = read("pbfhogg.1");
    assert!(whole.contains("pbfhogg\\-apply\\-changes(1)"), "{whole}");
    // Hidden commands have none.
    assert!(!pages.join("pbfhogg-check-refs.1").exists());
    // A page that exists is not replaced unasked.
    let message = run_fail(&[&"man", &"-o", &pages]);
    assert!(message.contains("--overwrite"), "{message}");
    run_ok(&[&"man", &"-O", &"-o", &pages]);
}
