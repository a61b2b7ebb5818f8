//! Words for the refusals that hyper sends itself, before there is a request: it says a status and nothing else,
//! and a person who typed `q=speed>20` into a URL cannot guess what was wrong.
//!
//! Such an answer is told by its form: a client error whose only fields are hyper's own. What a door answers always
//! has a field of the door's.

/// Longer heads have fields of a door.
const BARE_BYTES_MAX: usize = 160;

/// The refusal with a problem document (RFC 9457), when `answer` is one of hyper's own.
pub(super) fn reworded(answer: &[u8]) -> Option<Vec<u8>> {
    let rest = answer.strip_prefix(b"HTTP/1.1 4")?;
    if answer.len() > BARE_BYTES_MAX || !rest.ends_with(b"\r\n\r\n") {
        return None;
    }
    let text = std::str::from_utf8(rest).ok()?;
    let (status, fields) = text.split_once("\r\n")?;
    let is_own =
        |field: &str| matches!(field.split(':').next(), Some("connection" | "date" | "content-length"));
    if !fields.contains("content-length: 0\r\n") || !fields.trim_end().split("\r\n").all(is_own) {
        return None;
    }
    let (code, title, detail) = match status {
        "00 Bad Request" => (
            400,
            "Malformed request",
            "The head is not HTTP/1.1. In the request target, characters such as < > ^ | and blanks must be \
             percent-encoded (> is %3E); or a field name, a field value or the framing of the body is malformed.",
        ),
        "14 URI Too Long" => {
            (414, "Request target too long", "The request target is longer than this server reads.")
        }
        "31 Request Header Fields Too Large" => {
            (431, "Head too large", "The request head has more bytes or more fields than this server reads.")
        }
        _ => return None,
    };
    let body = format!(r#"{{"type":"about:blank","title":"{title}","status":{code},"detail":"{detail}"}}"#);
    let head = format!(
        "HTTP/1.1 4{status}\r\nconnection: close\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    Some((head + &body).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_refusals_get_words() {
        let own =
            b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: today\r\n\r\n";
        let worded = String::from_utf8(reworded(own).unwrap()).unwrap();
        assert!(worded.contains("%3E"), "{worded}");
        let (head, body) = worded.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
        for other in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-type: a\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 411 Length Required\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 5\r\n\r\nhello",
        ] {
            assert_eq!(reworded(other.as_bytes()), None, "{other}");
        }
    }
}
