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
        "4,46.0,,,,,,,,,,,line 5: 2 columns: there is no column 3".to_owned(),
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
        assert!(
            said.contains("line 1: appended columns need columns"),
            "{said}"
        );
    }
}

/// The fields of the rows of a table, as another reader of tables sees them. Empty lines are rows without fields.
fn rows(table: &str, separator: char) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut is_quoted, mut chars) = (false, table.chars().peekable());
    while let Some(char) = chars.next() {
        match char {
            '"' if is_quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' if is_quoted => is_quoted = false,
            _ if is_quoted => field.push(char),
            '"' if field.is_empty() => is_quoted = true,
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' if row.is_empty() && field.is_empty() => rows.push(Vec::new()),
            '\n' => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            char if char == separator => row.push(std::mem::take(&mut field)),
            char => field.push(char),
        }
    }
    assert!(!is_quoted && row.is_empty() && field.is_empty(), "{table}");
    rows
}

#[test]
fn every_row_has_the_columns_of_the_header_and_empty_lines_stay_empty() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let rows_of = |options: &[&str], table: &str, separator| {
        let (status, out, said) = geocode(&index, &[&["--csv"][..], options].concat(), table);
        assert_eq!((status, said.as_str()), (0, ""), "{table}");
        rows(&out, separator)
    };
    let table =
        "id,lat,lon,note\n1,46,6,a\n2,46,6\n3,46,6,x,extra\n\n4,46,6,,, \n5\n   \n6,46,6,\"a\n";
    let found = rows_of(&[], table, ',');
    let widths: Vec<usize> = found.iter().map(Vec::len).collect();
    assert_eq!(widths, [13, 13, 13, 13, 0, 13, 13, 0, 13]);
    let answered = |row: &[String]| row[4] == LABEL && row[12].is_empty();
    assert!(
        [1, 2, 5].iter().all(|row| answered(&found[*row])),
        "{found:?}"
    );
    assert_eq!(found[2][..4], ["2", "46", "6", ""]);
    // Further fields stay in the last column.
    assert_eq!(found[3][..5], ["3", "46", "6", "x,extra", ""]);
    assert_eq!(found[3][12], "line 4: 5 columns, but the table has 4");
    assert_eq!(found[6][12], "line 7: one column: there is no column 2");
    assert_eq!(found[8][0], "6,46,6,\"a");
    assert_eq!(found[8][12], "line 9: a quote does not end");
    // The first line of a table without names tells its width.
    let found = rows_of(&["--columns", "2,3"], "1;46;6;\n2;46;6\n3;46;6;a;b\n", ';');
    assert!(found.iter().all(|row| row.len() == 13), "{found:?}");
    assert!(answered(&found[0]) && answered(&found[1]) && !answered(&found[2]));
    let found = rows_of(&[], "46,6\n\n7,46,6\n46\n", ',');
    let widths: Vec<usize> = found.iter().map(Vec::len).collect();
    assert_eq!(widths, [11, 0, 11, 11]);
    assert_eq!(found[2][1], "46,6");
    let (_, out, _) = geocode(&index, &["--csv"], "\n  \nlat,lon\n46,6\n");
    assert!(out.starts_with("\n\nlat,lon,address,"), "{out}");
    // A row of tabs is no empty line.
    let found = rows_of(&[], "lat\tlon\n\t\n46\t6\n", '\t');
    assert!(found.iter().all(|row| row.len() == 11), "{found:?}");
}

#[test]
fn no_column_is_named_twice_in_a_table_with_columns_like_ours() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let table = "Street,lat,lon,\"error\"\nTheir Street,46,6,none\n";
    let (status, once, _) = geocode(&index, &["--csv"], table);
    assert_eq!(status, 0);
    let (_, twice, _) = geocode(&index, &["--csv"], &once);
    for (text, street) in [(&once, "street_2"), (&twice, "street_3")] {
        let found = rows(text, ',');
        let mut names: Vec<String> = found[0].iter().map(|name| name.to_lowercase()).collect();
        let column = names.iter().position(|name| name == street).unwrap();
        assert_eq!(found[1][column], "Lac, \"A\" ;", "{text}");
        assert_eq!(found[1][0], "Their Street");
        assert_eq!(found[1].len(), names.len());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), found[0].len(), "{text}");
    }
}

#[test]
fn line_breaks_stay_as_they_are_in_quotes_and_at_the_ends_of_rows() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let table = "\u{feff}lat,\"the\r\nnote\",lon\r\n46,\"a\n\"\"b\"\"\n\",6\r\n\r\n46,5\" pipe,6\r\n46,c,north\r\n46,d,6";
    let (status, out, said) = geocode(&index, &["--csv"], table);
    assert_eq!((status, said.as_str()), (0, ""));
    let answer = "\"Lac, \"\"A\"\" ; 7, 1200 Bourg\",7,\"Lac, \"\"A\"\" ;\",1200,Bourg,,,,";
    let expected = [
        "\u{feff}lat,\"the\r\nnote\",lon,address,house_number,street,postcode,city,state,country,country_code,error\r\n"
            .to_owned(),
        format!("46,\"a\n\"\"b\"\"\n\",6,{answer}\r\n\r\n46,5\" pipe,6,{answer}\r\n"),
        "46,c,north,,,,,,,,,line 8: longitude 'north' is not a number\r\n".to_owned(),
        format!("46,d,6,{answer}\r\n"),
    ];
    assert_eq!(out, expected.concat());
    // Without --csv, a row is one answer.
    let (_, out, _) = geocode(&index, &[], "lat,note,lon\n46,\"a\nb\",6\n46,c,6\n");
    assert_eq!(out, format!("{LABEL}\n{LABEL}\n"));
    // In a JSON object, a quote is no quote of a table.
    let object = "{\"lat\": 46, \"lon\": 6, \"note\": \"\\\"\"}\n";
    let (_, out, _) = geocode(&index, &[], &object.repeat(2));
    assert_eq!(out, format!("{LABEL}\n{LABEL}\n"));
    // A separator in quotes does not separate.
    let (_, out, _) = geocode(&index, &[], "lat,lon,\"a;b\"\n46,6,\"c\td\"\n");
    assert_eq!(out, format!("{LABEL}\n"));
    let (_, out, _) = geocode(&index, &["--columns", "1,2"], "\u{feff}46,6\n");
    assert_eq!(out, format!("{LABEL}\n"));
}

#[test]
fn a_quote_that_does_not_end_spoils_only_its_own_line() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let row = format!("46,6,{}\n", "x".repeat(100));
    let table = "lat,lon,note\n46,6,\"open\n".to_owned() + &row.repeat(700);
    let (status, out, _) = geocode(&index, &["--csv"], &table);
    assert_eq!(status, 0);
    let found = rows(&out, ',');
    assert_eq!(found.len(), 702);
    assert!(found.iter().all(|row| row.len() == 12));
    assert_eq!(found[1][11], "line 2: a quote does not end");
    let is_answered = |row: &Vec<String>| row[11].is_empty() && row[3] == LABEL;
    assert!(found[2..].iter().all(is_answered));
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
    assert!(single("6.0", "46.0").contains("did you mean 46 6?"));
    assert_eq!(single("1", "2"), "");
}
