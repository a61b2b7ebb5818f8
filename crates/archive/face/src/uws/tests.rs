use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::wish::labels;
use super::*;
use crate::form::File;

fn asked(value: &str, length: u64) -> Wanted {
    let headers = HeaderMap::from_iter([(RANGE, HeaderValue::from_str(value).unwrap())]);
    wanted(&headers, length, &HeaderValue::from_static("\"t\""))
}

#[test]
fn ranges_are_those_of_the_standard() {
    for (value, length, expected) in [
        ("bytes=0-0", 10, Wanted::Part(0..1)),
        ("bytes=9-", 10, Wanted::Part(9..10)),
        ("bytes=10-", 10, Wanted::Beyond),
        ("bytes=-3", 10, Wanted::Part(7..10)),
        ("bytes=-30", 10, Wanted::Part(0..10)),
        ("bytes=-0", 10, Wanted::Beyond),
        ("bytes=0-", 0, Wanted::Beyond),
        ("bytes=-5", 0, Wanted::Beyond),
        ("bytes=5-4", 10, Wanted::Whole),
        ("bytes=0-1,3-4", 10, Wanted::Whole),
    ] {
        assert_eq!(asked(value, length), expected, "{value} of {length}");
    }
    let mut headers = HeaderMap::from_iter([(RANGE, HeaderValue::from_static("bytes=0-1"))]);
    headers.insert(IF_RANGE, HeaderValue::from_static("W/\"t\""));
    assert_eq!(wanted(&headers, 10, &HeaderValue::from_static("\"t\"")), Wanted::Whole, "weak is not enough");
}

#[test]
fn uploads_are_found_by_their_labels() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let parameters = [
        pair("upload", "a,param:x; b , PARAM:Y ;c,http://a/b;;d"),
        pair("QUERY", "e,param:no"),
        pair("UPLOAD", "f,param:X;g,param:"),
    ];
    assert_eq!(labels(&parameters), ["x", "Y"]);
}

proptest! {
    #[test]
    fn a_range_is_always_within_its_body(value in "(bytes|b)?[= ]?[0-9]{0,21}-?[0-9]{0,21}", length in 0u64..50) {
        if let Wanted::Part(range) = asked(&value, length) {
            prop_assert!(range.start < range.end && range.end <= length);
        }
    }

    #[test]
    fn what_is_kept_of_a_file_is_the_file(media in "[a-z/;= \r\n]{0,12}", bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
        let file = File { part: "p".into(), media: Some(media.clone()), bytes: bytes.clone().into() };
        let wish = Wish::read(Form { pairs: Vec::new(), files: vec![file] }, &[]).unwrap();
        let kept = Kept::read(&wish.parts[0].1);
        prop_assert_eq!(&kept.bytes[..], &bytes[..]);
        prop_assert_eq!(kept.media.as_deref(), media.lines().next().filter(|line| !line.is_empty()));
        // Whatever a store gives back is read as something.
        Kept::read(&bytes.into());
    }

    #[test]
    fn every_wish_is_read_or_refused(pairs in proptest::collection::vec(("(?i)(phase|action|destruction|executionduration|upload|x)", "\\PC{0,12}"), 0..6)) {
        let mut form = Form::default();
        for (name, value) in pairs {
            form.push(name.into(), value.into()).unwrap();
        }
        let _ = Wish::read(form, &[]);
    }

    #[test]
    fn every_query_of_a_list_or_a_job_is_answered(query in "((PHASE|AFTER|LAST|WAIT)=[-A-Z0-9:.]{0,22}&){0,4}") {
        let most = std::time::Duration::from_secs(50);
        let _ = list::filter(&query);
        if let Ok(Some(wait)) = wait::asked(&query, most) {
            prop_assert!(wait.time <= most);
        }
    }
}
