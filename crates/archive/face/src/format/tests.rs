use proptest::prelude::*;

use super::*;

/// A format of the roof's.
struct Paper;

impl ExtraFormat for Paper {
    fn media(&self) -> &'static str {
        "application/vnd.paper"
    }

    fn names(&self) -> &'static [&'static str] {
        &["paper", "vo-paper"]
    }

    fn extension(&self) -> &'static str {
        "pap"
    }

    fn tells_end(&self) -> bool {
        true
    }

    fn writer(&self, head: Head) -> Box<dyn TableWriter> {
        Box::new(csv::Writer::new(head.fields, Delimiter::Pipe))
    }
}

fn formats() -> Formats {
    Formats::new(vec![Arc::new(Paper)], Serialization::Binary2)
}

fn name(chosen: &Chosen) -> String {
    let media = chosen.media.to_str().unwrap();
    match &chosen.format {
        Format::Votable(options) => {
            format!("{:?} {} {media}", options.serialization, options.version.as_str())
        }
        Format::Csv => format!("csv {media}"),
        Format::Tsv => format!("tsv {media}"),
        Format::Json => format!("json {media}"),
        Format::Text => format!("text {media}"),
        Format::Html => format!("html {media}"),
        Format::Fits => format!("fits {media}"),
        Format::Arrow => format!("arrow {media}"),
        Format::Extra(extra) => format!("{} {media}", extra.extension()),
    }
}

#[test]
fn every_name_leads_to_its_format() {
    for (asked, expected) in [
        ("", "Binary2 1.4 application/x-votable+xml"),
        ("votable", "Binary2 1.4 application/x-votable+xml"),
        ("VOTable", "Binary2 1.4 application/x-votable+xml"),
        ("votable/td", "TableData 1.4 application/x-votable+xml;serialization=TABLEDATA"),
        ("votable/b2", "Binary2 1.4 application/x-votable+xml;serialization=BINARY2"),
        ("votable/binary", "Binary 1.4 application/x-votable+xml;serialization=BINARY"),
        ("application/x-votable+xml", "Binary2 1.4 application/x-votable+xml"),
        (
            "application/x-votable+xml; Serialization=\"tabledata\"",
            "TableData 1.4 application/x-votable+xml; Serialization=\"tabledata\"",
        ),
        (
            "application/x-votable+xml;serialization=BINARY;version=1.3",
            "Binary 1.3 application/x-votable+xml;serialization=BINARY;version=1.3",
        ),
        (
            "application/x-votable+xml;version=1.5;content=datalink",
            "Binary2 1.5 application/x-votable+xml;version=1.5;content=datalink",
        ),
        ("text/xml", "TableData 1.4 text/xml"),
        ("csv", "csv text/csv;header=present;charset=utf-8"),
        ("text/csv", "csv text/csv"),
        ("text/csv; header=present", "csv text/csv; header=present"),
        ("TSV", "tsv text/tab-separated-values;charset=utf-8"),
        ("json", "json application/json"),
        ("application/json; charset=utf-8", "json application/json; charset=utf-8"),
        ("txt", "text text/plain;charset=utf-8"),
        ("text/html", "html text/html"),
        ("fits", "fits application/fits"),
        ("arrow", "arrow application/vnd.apache.arrow.stream"),
        ("vo-paper", "pap application/vnd.paper"),
        ("application/VND.paper;x=y", "pap application/VND.paper;x=y"),
    ] {
        let chosen = formats().choose(Some(asked)).unwrap_or_else(|fault| panic!("{asked}: {fault:?}"));
        assert_eq!(name(&chosen), expected, "{asked}");
    }
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    for asked in [
        "xls",
        "application/x-votable+xml;serialization=FITS",
        "application/x-votable+xml;version=2.0",
        "text/csv;header=absent",
        "text/csv\u{7f}",
        "image/png",
        "votable/",
    ] {
        let fault = formats().choose(Some(asked)).map(|chosen| name(&chosen)).unwrap_err();
        assert!(fault.message().contains("votable/td"), "{asked}: {fault:?}");
    }
}

#[test]
fn everything_listed_can_be_asked_for() {
    let formats = formats();
    for listed in formats.list() {
        let by_media = formats.choose(Some(listed.media)).unwrap();
        assert_eq!(by_media.media, listed.media, "a media type comes back as it was asked for");
        for alias in listed.names {
            let by_name = formats.choose(Some(alias)).unwrap();
            assert_eq!(
                std::mem::discriminant(&by_name.format),
                std::mem::discriminant(&by_media.format),
                "{alias}"
            );
        }
    }
    let mut names: Vec<&str> = formats.list().flat_map(|listed| listed.names.iter().copied()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "no name stands for two formats");
}

#[test]
fn faults_take_the_family_of_the_format() {
    for (asked, expected) in [
        ("", ErrorForm::default()),
        ("votable/td", ErrorForm::default()),
        ("application/fits", ErrorForm::default()),
        ("text/xml", ErrorForm::Votable(HeaderValue::from_static("text/xml"))),
        ("CSV", ErrorForm::Text),
        ("text/plain; charset=utf-8", ErrorForm::Text),
        ("json", ErrorForm::Json),
        ("text/html", ErrorForm::Html),
    ] {
        assert_eq!(formats().error_form(Some(asked)), expected, "{asked}");
    }
}

proptest! {
    #[test]
    fn any_format_is_answered(asked in "[ -~]{0,30}|application/x-votable.xml[;a-z= ]{0,20}") {
        let is_media = asked.contains('/') && !asked.trim().is_empty() && !asked.trim().starts_with("votable");
        if is_media && let Ok(chosen) = formats().choose(Some(&asked)) {
            prop_assert_eq!(chosen.media.to_str().unwrap(), asked.trim());
        }
        let _ = formats().error_form(Some(&asked));
    }
}
