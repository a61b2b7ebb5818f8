//! Refusals: what went wrong, as types, their status, and the document that says so (DALI 1.1 4.2).
//!
//! A fault is a VOTable with INFO QUERY_STATUS=ERROR unless the client asked for its result as text, JSON or a page:
//! then it is told in that form, because a VOTable would be noise there. The status fits the fault (TAP 1.1 3.3).
//! What the engine says of its own failures is for the log, never for the body.

use std::borrow::Cow;

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use trifid_archive_engine::QueryError;
use trifid_base_web::{Body, Response, ShellProblem};

use crate::limits::{QUOTED_BYTES_MAX, RETRY_AFTER_S};
use crate::xml;

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// 400: a parameter, a query, an upload.
    Invalid(Cow<'static, str>),
    /// 403: not in the state in which things are.
    Forbidden(Cow<'static, str>),
    /// 404: no such resource.
    NotFound(Cow<'static, str>),
    /// 405: the resource takes other methods.
    MethodNotAllowed(HeaderValue),
    /// 413: more than this service takes.
    TooLarge(Cow<'static, str>),
    /// 415: a body of another kind.
    Unsupported(Cow<'static, str>),
    /// 416: bytes beyond those that there are.
    Beyond(u64),
    /// 503: try again.
    Busy(Cow<'static, str>),
    /// 503: it took too long; the same again will too.
    TimedOut(Cow<'static, str>),
    /// 500: the log says why.
    Internal,
    /// What the shell refuses, in its words.
    Shell(ShellProblem),
}

impl Fault {
    /// A mistake of the client's.
    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(message.into())
    }

    /// A resource that is not there.
    pub(crate) fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::NotFound(message.into())
    }

    /// More than a limit.
    pub(crate) fn too_large(message: impl Into<Cow<'static, str>>) -> Self {
        Self::TooLarge(message.into())
    }

    /// A body that is not understood.
    pub(crate) fn unsupported(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Unsupported(message.into())
    }

    /// A failure of ours: noted here, once.
    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed for a reason of the archive's own");
        Self::Internal
    }

    /// The status code.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unsupported(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Beyond(_) => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::Busy(_) | Self::TimedOut(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Shell(problem) => problem.status(),
        }
    }

    /// The message, for people.
    pub(crate) fn message(&self) -> Cow<'_, str> {
        match self {
            Self::Invalid(message)
            | Self::Forbidden(message)
            | Self::NotFound(message)
            | Self::TooLarge(message)
            | Self::Unsupported(message)
            | Self::Busy(message)
            | Self::TimedOut(message) => Cow::Borrowed(message),
            Self::MethodNotAllowed(allow) => {
                Cow::Owned(format!("this resource takes {} only", allow.to_str().unwrap_or_default()))
            }
            Self::Beyond(bytes) => {
                Cow::Owned(format!("there are {bytes} bytes, and none of those asked for"))
            }
            Self::Internal => {
                Cow::Borrowed("the request failed for a reason of the service's own; the operator can see it")
            }
            Self::Shell(problem) => Cow::Owned(problem.detail()),
        }
    }

    /// The answer that says so.
    pub(crate) fn into_response(self, form: &ErrorForm) -> Response {
        let body = form.document(&self.message());
        let mut response = Response::new(Body::full(body));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, form.content_type());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self {
            Self::MethodNotAllowed(allow) => drop(headers.insert(ALLOW, allow)),
            Self::Busy(_) => drop(headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S))),
            Self::Beyond(bytes) => {
                let range = HeaderValue::try_from(format!("bytes */{bytes}"));
                headers.extend(range.map(|range| (CONTENT_RANGE, range)));
            }
            Self::Invalid(_)
            | Self::Forbidden(_)
            | Self::NotFound(_)
            | Self::TooLarge(_)
            | Self::Unsupported(_)
            | Self::TimedOut(_)
            | Self::Internal
            | Self::Shell(_) => {}
        }
        response
    }
}

/// The one table from what the engine refuses to what HTTP answers.
impl From<QueryError> for Fault {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        match error {
            QueryError::Invalid(_) | QueryError::TooLarge(_) => Self::Invalid(message.into()),
            QueryError::Busy => Self::Busy(message.into()),
            QueryError::TimedOut { .. } => Self::TimedOut(message.into()),
            QueryError::Aborted => Self::Busy("the query was ended because the service stops".into()),
            QueryError::Internal(_) => Self::internal(message),
        }
    }
}

/// What a result that breaks off says in its tail: [`Fault`]'s words, so that no engine text gets into a body.
pub(crate) fn late(error: QueryError) -> String {
    Fault::from(error).message().into_owned()
}

/// The form in which a fault is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// A VOTable under this media type.
    Votable(HeaderValue),
    /// Text.
    Text,
    /// A JSON object.
    Json,
    /// A page.
    Html,
    /// A VOTable as simple cone searches want it (SCS 1.03 2.3): INFO name="Error".
    Cone,
}

/// The media type of a VOTable (DALI 1.1 3.4.3, VOTable 1.5 8).
pub(crate) const VOTABLE: HeaderValue = HeaderValue::from_static("application/x-votable+xml");

impl Default for ErrorForm {
    fn default() -> Self {
        Self::Votable(VOTABLE)
    }
}

impl ErrorForm {
    fn content_type(&self) -> HeaderValue {
        match self {
            Self::Votable(media) => media.clone(),
            Self::Text => HeaderValue::from_static("text/plain; charset=utf-8"),
            Self::Json => HeaderValue::from_static("application/json"),
            Self::Html => HeaderValue::from_static("text/html; charset=utf-8"),
            Self::Cone => HeaderValue::from_static("text/xml"),
        }
    }

    /// The document.
    pub(crate) fn document(&self, message: &str) -> String {
        match self {
            Self::Votable(_) => votable(message, ""),
            Self::Cone => {
                let mut info = "<INFO name=\"Error\"".to_owned();
                xml::attribute(&mut info, "value", message);
                info.push_str("/>\n");
                votable(message, &info)
            }
            Self::Text => format!("ERROR\n{message}\n"),
            Self::Json => json(message),
            Self::Html => html(message),
        }
    }
}

/// DALI 1.1 4.2: an empty results resource whose status is ERROR; `info` comes before it.
fn votable(message: &str, info: &str) -> String {
    let mut out = String::with_capacity(512 + message.len());
    out.push_str(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <VOTABLE version=\"1.4\" xmlns=\"http://www.ivoa.net/xml/VOTable/v1.3\">\n",
    );
    out.push_str(info);
    out.push_str("<RESOURCE type=\"results\">\n<INFO name=\"QUERY_STATUS\" value=\"ERROR\">");
    xml::text(&mut out, message);
    out.push_str("</INFO>\n</RESOURCE>\n</VOTABLE>\n");
    out
}

fn json(message: &str) -> String {
    let mut out = "{\"status\":\"ERROR\",\"message\":\"".to_owned();
    for character in message.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push_str("\"}\n");
    out
}

fn html(message: &str) -> String {
    let mut out =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Error</title></head>\
        <body><h1>Error</h1><pre>"
            .to_owned();
    xml::text(&mut out, message);
    out.push_str("</pre></body></html>\n");
    out
}

/// A client's value as it is repeated in a message: shortened, controls replaced.
pub(crate) fn quoted(value: &str) -> String {
    let mut end = value.len().min(QUOTED_BYTES_MAX);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    let shown = value[..end].chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut out: String = std::iter::once('`').chain(shown).collect();
    out.push_str(if end < value.len() { "...`" } else { "`" });
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(fault: Fault, form: &ErrorForm) -> (u16, String, String) {
        let response = fault.into_response(form);
        let media = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let text = String::from_utf8(response.body().bytes().unwrap().to_vec()).unwrap();
        (response.status().as_u16(), media, text)
    }

    #[test]
    fn a_fault_takes_the_form_that_was_asked_for() {
        let fault = || Fault::invalid("a < b\n  ^");
        let (status, media, text) = body(fault(), &ErrorForm::default());
        assert_eq!((status, media.as_str()), (400, "application/x-votable+xml"));
        assert!(text.contains("value=\"ERROR\">a &lt; b\n  ^</INFO>"), "{text}");
        let (_, media, text) = body(fault(), &ErrorForm::Text);
        assert_eq!((media.as_str(), text.as_str()), ("text/plain; charset=utf-8", "ERROR\na < b\n  ^\n"));
        let (_, _, text) = body(fault(), &ErrorForm::Json);
        assert_eq!(text, "{\"status\":\"ERROR\",\"message\":\"a < b\\n  ^\"}\n");
        let (_, _, text) = body(fault(), &ErrorForm::Html);
        assert!(text.contains("<pre>a &lt; b\n  ^</pre>"), "{text}");
        let (_, media, text) = body(fault(), &ErrorForm::Cone);
        assert_eq!(media, "text/xml");
        assert!(text.contains("<INFO name=\"Error\" value=\"a &lt; b&#10;  ^\"/>"), "{text}");
    }

    #[test]
    fn the_engines_own_failures_stay_in_the_log() {
        let fault = Fault::from(QueryError::internal("segment 7 is torn"));
        let (status, _, text) = body(fault, &ErrorForm::default());
        assert_eq!(status, 500);
        assert!(!text.contains("segment"), "{text}");
        assert!(!late(QueryError::internal("segment 7 is torn")).contains("segment"));
    }

    #[test]
    fn a_busy_engine_says_when_to_come_back() {
        let response = Fault::from(QueryError::Busy).into_response(&ErrorForm::default());
        assert_eq!(
            (response.status().as_u16(), &response.headers()[RETRY_AFTER]),
            (503, &HeaderValue::from(1))
        );
        let response = Fault::from(QueryError::TimedOut { seconds: 60 }).into_response(&ErrorForm::Text);
        assert_eq!((response.status().as_u16(), response.headers().get(RETRY_AFTER)), (503, None));
    }

    #[test]
    fn values_are_repeated_shortened() {
        assert_eq!(quoted("a\nb"), "`a b`");
        assert!(quoted(&"é".repeat(100)).ends_with("é...`"));
    }

    proptest! {
        #[test]
        fn any_message_is_well_formed(message in "\\PC{0,60}|[\\x00-\\x7f]{0,30}") {
            for form in [ErrorForm::default(), ErrorForm::Cone] {
                let document = form.document(&message);
                let mut reader = quick_xml::Reader::from_str(&document);
                while !matches!(reader.read_event().unwrap(), quick_xml::events::Event::Eof) {}
            }
        }
    }
}
