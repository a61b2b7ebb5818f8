//! The archive door of the real binary, with real clients.

mod clients;
mod hands;
mod hostile;
mod jobs;
mod queries;

use crate::harness::{Answer, Serving, Trifid};

/// A demo that serves, and what it printed.
fn demo() -> (Serving, String) {
    // The demo works in a folder of its own; this one is only where it starts.
    let mut serving = Trifid::new().serve(&["demo", "--port", "0"]);
    let printed = serving.printed_until("Ctrl-C");
    (serving, printed)
}

/// A value in a form.
fn encoded(value: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    value.bytes().map(encode).collect()
}

/// Posts a form.
fn post(serving: &Serving, target: &str, form: &[(&str, &str)]) -> Answer {
    let pairs: Vec<String> = form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let headers = "Content-Type: application/x-www-form-urlencoded\r\n";
    serving.request("POST", target, headers, pairs.join("&"))
}

/// The rows of a query as lines of CSV, without the header.
fn rows(serving: &Serving, query: &str) -> Vec<String> {
    let answer = ask(serving, query, "csv");
    assert_eq!(answer.status, 200, "{query}: {}", answer.body);
    dechunked(&answer).lines().skip(1).map(str::to_owned).collect()
}

fn ask(serving: &Serving, query: &str, format: &str) -> Answer {
    post(serving, "/tap/sync", &[("LANG", "ADQL"), ("FORMAT", format), ("QUERY", query)])
}

/// The body without the frames of a chunked one.
fn dechunked(answer: &Answer) -> String {
    if !answer.is_chunked {
        return answer.body.clone();
    }
    let (mut text, mut rest) = (String::new(), answer.body.as_str());
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap();
        if length == 0 {
            break;
        }
        text += &after[..length];
        rest = &after[length + 2..];
    }
    text
}
