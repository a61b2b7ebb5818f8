//! Entry points for fuzzing: any input is answered, none panics.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method};
use trifid_archive_model::votable::Serialization;
use trifid_base_web::Request;
use trifid_base_web::router::Outcome;

use crate::form::{File, Form};
use crate::format::Formats;
use crate::origin::Origin;
use crate::params::{Params, asked_format};
use crate::upload::{self, Bounds};
use crate::{percent, route, uws};

/// Reads `data` as a multipart body, the boundary its first line, and everything in it as parameters and uploads.
pub fn multipart(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let Ok(boundary) = HeaderValue::from_bytes(&data[..end]) else { return };
    let media = [b"multipart/form-data; boundary=", boundary.as_bytes()].concat();
    let mut request = Request::new(Method::POST, route::ROOT.parse().expect("the root is a path"));
    request.headers.extend(HeaderValue::from_bytes(&media).map(|media| (CONTENT_TYPE, media)));
    request.body = Bytes::copy_from_slice(&data[end + 1..]);
    read(&request);
}

/// Reads `data` as a request's path and query, and again as a form.
pub fn form(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(uri) = format!("/tap/{text}").parse() else { return };
    let mut request = Request::new(Method::GET, uri);
    request.headers.extend(HeaderValue::from_bytes(data).map(|host| (HOST, host)));
    let _ = Origin::Host { is_tls: false }.root(&request);
    let table = route::table().expect("the table of routes does not contradict itself");
    if let Outcome::Found(found) = table.get(&request.method, request.path()) {
        found.params.iter().for_each(|(_, raw)| drop(percent::segment(raw)));
    }
    read(&request);
    let mut request = Request::new(Method::POST, route::ROOT.parse().expect("the root is a path"));
    request.body = Bytes::copy_from_slice(data);
    read(&request);
}

fn read(request: &Request) {
    let Ok(form) = Form::read(request) else { return };
    uws::fuzz(request, &form);
    let formats = Formats::new(Vec::new(), Serialization::Binary2);
    let _ = formats.error_form(asked_format(&form)).document("x");
    let Ok(params) = Params::read(&form) else { return };
    let _ = formats.choose(params.format);
    let _ = upload::specs(&params.uploads);
    form.files.iter().for_each(|file| table(file, &formats));
}

/// Reads a file as an uploaded table within small bounds.
fn table(file: &File, formats: &Formats) {
    let _ = upload::table("t", file, Bounds { rows: 1000, bytes: 1 << 20 }, formats);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    #[test]
    fn the_corpus_is_answered() {
        for (target, run) in [("tap_form", super::form as fn(&[u8])), ("tap_multipart", super::multipart)] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
            let files: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
            assert!(!files.is_empty(), "{}", folder.display());
            for file in files {
                run(&std::fs::read(file.unwrap().path()).unwrap());
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(data in proptest::collection::vec(any::<u8>(), 0..100)) {
            super::multipart(&data);
            super::form(&data);
        }

        #[test]
        fn any_form_is_answered(text in "(sync|tables/[a-z%0-9]{0,6})?\\?([A-Z]{1,10}=[a-z,:%;/0-9]{0,12}&){0,4}") {
            super::form(text.as_bytes());
        }

        #[test]
        fn any_parts_are_answered(
            parts in proptest::collection::vec(("(UPLOAD|QUERY|FORMAT|f)", "[ -~\r\n\t]{0,40}"), 0..4),
        ) {
            let mut body = "b\n".to_owned();
            for (name, content) in parts {
                body += &format!("--b\r\nContent-Disposition: form-data; name={name}\r\n\r\n{content}\r\n");
            }
            super::multipart((body + "--b--").as_bytes());
        }
    }
}
