//! Places in tables: columns by name or number, answers as columns, and lines that are no place.

use crate::common::{pbfhogg, run_ok};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The index of a house in Rue du Lac, a street whose name needs quotes.
fn index(directory: &Path) -> PathBuf {
    let (input, index) = (directory.join("in.opl"), directory.join("index"));
    let opl = "n1 v1 Taddr:housenumber=7,addr:street=Lac%2c%%20%\"A\"%20%%3b%,addr:postcode=1200,addr:city=Bourg x6.0 y46.0\n\
               n2 v1 T x5.999 y46.0001\n\
               n3 v1 T x6.001 y46.0001\n\
               w1 v1 Thighway=residential,name=Lac%2c%%20%\"A\"%20%%3b% Nn2,n3\n";
    std::fs::write(&input, opl).unwrap();
    run_ok(&[&"build-geocode-index", &input, &"-o", &index]);
    index
}

/// Runs `geocode` with a table on standard input. Returns its status, its output and its messages.
fn geocode(index: &Path, options: &[&str], table: &str) -> (i32, String, String) {
    let mut command = pbfhogg();
    command.arg("geocode").arg(index).args(options);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(table.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let status = output.status.code().unwrap();
    (status, text(output.stdout), text(output.stderr))
}

const LABEL: &str = "Lac, \"A\" ; 7, 1200 Bourg";

#[test]
fn columns_of_any_order_and_separator_give_the_same_answers() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    for (options, table) in [
        (&[][..], "46.0 6.0\n46.0,6.0\n"),
        (&[], "lat,lon\n46.0,6.0\n46,6\n"),
        (&[], "id;LONGITUDE;Latitude\r\n1;6.0;46.0\r\n2;6;46\r\n"),
        (&[], "name\ty\tx\nA, b\t46.0\t6.0\n\t46\t6"),
        (
            &[],
            "\u{feff}\"lat\",\"a \"\"note\"\"\",lng\n46.0,\"x, y\",6.0\n\"46\",,\"6\"\n",
        ),
        (&["--columns", "3,2"], "1,6.0,46.0\n2,6,46\n"),
        (&["--columns", "3,2"], "a,b,c\n1,6.0,46.0\n2,6,46\n"),
        (
            &[],
            "{\"lat\": 46.0, \"lon\": 6.0}\n{\"latitude\": \"46\", \"lng\": \"6\"}\n",
        ),
        (&["--limit", "2"], "lat,lon\n46.0,6.0\n46,6\n46,6\n46,6\n"),
    ] {
        let (status, out, said) = geocode(&index, options, table);
        assert_eq!((status, said.as_str()), (0, ""), "{table}");
        assert_eq!(out, format!("{LABEL}\n{LABEL}\n"), "{table}");
    }
}

#[test]
fn answers_are_appended_to_the_lines_as_they_came() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let (status, out, said) = geocode(
        &index,
        &["--csv"],
        "id,lat,lon,\"a,b\"\n1,46.0,6.0,\" x \"\n2,0,0,\n3,north,6,y\n4,46.0\n",
    );
    assert_eq!((status, said.as_str()), (0, ""));
    let street = "\"Lac, \"\"A\"\" ;\"";
    let expected = [
        "id,lat,lon,\"a,b\",address,house_number,street,postcode,city,state,country,country_code,error".to_owned(),
        format!("1,46.0,6.0,\" x \",\"Lac, \"\"A\"\" ; 7, 1200 Bourg\",7,{street},1200,Bourg,,,,"),
        "2,0,0,,,,,,,,,,".to_owned(),
        "3,north,6,y,,,,,,,,,line 4: latitude 'north' is not a number".to_owned(),
        "4,46.0,,,,,,,,,line 5: 2 columns: there is no column 3".to_owned(),
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
    // The separator and the ends of lines of the table; without names of columns, none are added.
    let (_, out, _) = geocode(&index, &["--csv", "--columns", "2,3"], "1;46.0;6.0\r\n");
    let street = "\"Lac, \"\"A\"\" ;\"";
    let label = "\"Lac, \"\"A\"\" ; 7, 1200 Bourg\"";
    assert_eq!(
        out,
        format!("1;46.0;6.0;{label};7;{street};1200;Bourg;;;;\r\n")
    );
    for table in ["46.0 6.0\n", "{\"lat\": 46.0, \"lon\": 6.0}\n"] {
        let (status, out, said) = geocode(&index, &["--csv"], table);
        assert_eq!((status, out.as_str()), (2, ""), "{table}");
        assert!(said.contains("line 1: --csv needs columns"), "{said}");
    }
}

#[test]
fn lines_that_are_no_place_are_refused_with_their_number() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let (status, out, _) = geocode(
        &index,
        &[],
        "46.0,6.0\n1,46.0,6.0\n\n46.0\n\"46.0,6.0\n99,6\n",
    );
    assert_eq!(status, 0);
    let found: Vec<&str> = out.lines().collect();
    assert_eq!(found[0], LABEL);
    for (line, cause) in [
        (1, "line 2: 3 columns"),
        (2, "line 3: expected a latitude and a longitude"),
        (3, "line 4: expected a latitude and a longitude"),
        (4, "line 5: "),
        (5, "line 6: "),
    ] {
        assert!(
            found[line].starts_with(&format!("error: {cause}")),
            "{found:?}"
        );
    }
    let (_, out, _) = geocode(&index, &["--json"], "lat,lon\n46.0\n");
    assert_eq!(
        out,
        "{\"error\":\"line 2: one column: there is no column 2\"}\n"
    );
    for (options, table, cause) in [
        (
            &[][..],
            "id,name\n1,A\n",
            "line 1: no columns called lat and lon",
        ),
        (
            &[],
            "\n\nlat,name\n1,A\n",
            "line 3: no columns called lat and lon",
        ),
        (&["--columns", "2"], "", "such as 3,2"),
        (&["--columns", "0,1"], "", "such as 3,2"),
        (&["--columns", "2,2"], "", "such as 3,2"),
    ] {
        let (status, out, said) = geocode(&index, options, table);
        assert_eq!((status, out.trim()), (2, ""), "{table}");
        assert!(said.contains(cause), "{said}");
    }
}

#[test]
fn exchanged_latitude_and_longitude_are_told_where_that_would_help() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let (status, _, said) = geocode(&index, &[], "lat,lon\n46.0,6.0\n6.0,46.0\n1,2\n6.0,46.0\n");
    assert_eq!(status, 0);
    assert!(
        said.contains("line 3: ") && said.contains("2 lines"),
        "{said}"
    );
    let (_, _, said) = geocode(&index, &[], "id,lat,lon\n1,6.0,46.0\n");
    assert!(
        said.contains("line 2: ") && said.contains("--columns 3,2"),
        "{said}"
    );
    let (_, _, said) = geocode(&index, &[], "46.0,6.0\n1,2\n89,6\n");
    assert_eq!(said, "");
    let single = |lat: &str, lon: &str| {
        let ended = pbfhogg()
            .arg("geocode")
            .arg(&index)
            .args([lat, lon])
            .output()
            .unwrap();
        String::from_utf8(ended.stderr).unwrap()
    };
    assert!(single("6.0", "46.0").contains("did you mean 46.0 6.0?"));
    assert_eq!(single("1", "2"), "");
}
