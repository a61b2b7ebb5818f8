use proptest::prelude::*;

use super::*;

const MEDIA: &str = "multipart/form-data; boundary=XX";

/// The pairs and files of a body, each as text.
fn check(media: &str, body: impl Into<Bytes>) -> Result<(Vec<String>, Vec<String>), Fault> {
    let body = body.into();
    let mut form = Form::default();
    read(media, &body, &mut form)?;
    let pairs = form.pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let file = |file: &File| {
        let media = file.media.as_deref().unwrap_or("-");
        format!("{} {media} {}", file.part, String::from_utf8_lossy(&file.bytes))
    };
    Ok((pairs, form.files.iter().map(file).collect()))
}

#[test]
fn parameters_and_files_are_told_apart() {
    let body = "preamble\r\n--XX\r\nContent-Disposition: form-data; name=\"QUERY\"\r\n\r\nSELECT 1\r\n\
        --XX  \r\ncontent-disposition: form-data; name=\"t\"; filename=\"t.xml\"\r\n\
        Content-Type: application/x-votable+xml\r\n\r\n<VOTABLE>\r\n--X\r\n</VOTABLE>\r\n--XX--\r\nepilogue";
    let (pairs, files) = check(MEDIA, body).unwrap();
    assert_eq!(pairs, ["QUERY=SELECT 1"]);
    assert_eq!(files[0], "QUERY - SELECT 1");
    assert_eq!(files[1], "t application/x-votable+xml <VOTABLE>\r\n--X\r\n</VOTABLE>");
}

#[test]
fn odd_but_legal_forms_are_read() {
    for (media, body, expected) in [
        (
            "multipart/form-data; boundary=\"X X\"",
            "--X X\r\nContent-Disposition: form-data; name=a\r\n\r\nv\r\n--X X--",
            "a=v",
        ),
        (MEDIA, "--XX\nContent-Disposition: form-data; name=a\n\nv\r\n--XX--", "a=v"),
        (MEDIA, "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n--XX--", "a="),
        (MEDIA, "--XX\r\nContent-Disposition: form-data; x=1; NAME=\"a\\\"b\"\r\n\r\nv\r\n--XX--", "a\"b=v"),
        (
            MEDIA,
            "--XX\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=a\r\n\r\nv\r\n--XX--",
            "a=v",
        ),
        (
            "multipart/form-data; charset=utf-8; boundary=XX",
            "--XX\r\nContent-Disposition: x; name=a\r\n\r\nv\r\n--XX--",
            "a=v",
        ),
    ] {
        assert_eq!(check(media, body).unwrap().0, [expected], "{body}");
    }
}

#[test]
fn broken_bodies_are_refused() {
    for (media, body) in [
        ("multipart/form-data", "--XX--"),
        ("multipart/form-data; boundary=", "----"),
        ("multipart/form-data; boundary=\"XX", "--XX--"),
        (MEDIA, ""),
        (MEDIA, "no boundary"),
        (MEDIA, "--XX"),
        (MEDIA, "--XXa"),
        (MEDIA, "--XX\r\n"),
        (MEDIA, "--XX\r\n--XX--"),
        (MEDIA, "--XX\r\nContent-Disposition: form-data; name=a\r\n\r\nv"),
        (MEDIA, "--XX\r\nContent-Disposition: form-data; name=a\r\nv\r\n--XX--"),
        (MEDIA, "--XX\r\nContent-Disposition: form-data\r\n\r\nv\r\n--XX--"),
        (MEDIA, "--XX\r\n\r\nv\r\n--XX--"),
    ] {
        assert_eq!(check(media, body).unwrap_err().status(), 400, "{body}");
    }
    let binary = b"--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n\xff\r\n--XX--";
    assert!(check(MEDIA, &binary[..]).is_err(), "a parameter is text");
}

#[test]
fn everything_is_bounded() {
    let part = |header: &str| format!("--XX\r\nContent-Disposition: form-data; name=a{header}\r\n\r\nv\r\n");
    assert!(check(MEDIA, part("").repeat(PARTS_MAX) + "--XX--").is_ok());
    assert!(check(MEDIA, part("").repeat(PARTS_MAX + 1) + "--XX--").is_err());
    assert!(check(MEDIA, part(&format!("; x={}", "y".repeat(PART_HEADER_BYTES_MAX))) + "--XX--").is_err());
    let boundary = "b".repeat(BOUNDARY_BYTES_MAX + 1);
    assert!(check(&format!("multipart/form-data; boundary={boundary}"), format!("--{boundary}--")).is_err());
    let field = format!(
        "--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n{}\r\n--XX--",
        "v".repeat(FIELD_BYTES_MAX + 1)
    );
    assert_eq!(check(MEDIA, field).unwrap_err().status(), 413);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_written_is_read(
        values in proptest::collection::vec(("[a-zA-Z][a-zA-Z0-9_]{0,8}", "[ -~\r\n]{0,40}", any::<bool>()), 0..6),
    ) {
        let mut body = String::new();
        for (name, value, is_file) in &values {
            let file = if *is_file { "; filename=\"f\"" } else { "" };
            body += &format!("--a_b\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n");
        }
        body += "--a_b--\r\n";
        prop_assume!(values.iter().all(|(_, value, _)| !value.contains("--a_b")));
        let (pairs, files) = check("multipart/form-data; boundary=a_b", body).unwrap();
        let wanted: Vec<String> =
            values.iter().filter(|(_, _, file)| !file).map(|(name, value, _)| format!("{name}={value}")).collect();
        prop_assert_eq!(pairs, wanted);
        let wanted: Vec<String> = values.iter().map(|(name, value, _)| format!("{name} - {value}")).collect();
        prop_assert_eq!(files, wanted);
    }

    #[test]
    fn any_bytes_are_answered(body in proptest::collection::vec(any::<u8>(), 0..80), media in "[ -~]{0,40}") {
        let _ = check(MEDIA, body.clone());
        let _ = check(&media, body);
    }

    #[test]
    fn any_mixture_of_marks_is_answered(marks in proptest::collection::vec(0_usize..9, 0..16)) {
        let words = ["--XX", "\r\n", "\n", "--", ":", ";name=", "\"", "Content-Disposition", "v"];
        let body: String = marks.into_iter().map(|at| words[at]).collect();
        let _ = check(MEDIA, body);
    }
}
