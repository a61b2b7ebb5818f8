//! The list of jobs, and what may be left out of it (UWS 1.1 2.2.2.1).
//!
//! Filters are joined by AND, several phases by OR. A filter that is malformed is refused: a list that is longer than
//! what was asked for looks like an answer and is none.

use trifid_archive_engine::jobs::{Filter, Job, Phase};
use trifid_archive_model::time;
use trifid_base_runtime::Timestamp;

use super::{document, wrong};
use crate::fault::Fault;
use crate::form::Form;
use crate::xml;

/// What the query of a request asks of the list.
pub(super) fn filter(query: &str) -> Result<Filter, Fault> {
    let mut form = Form::default();
    form.add(query)?;
    let mut filter = Filter::default();
    for (name, value) in form.pairs.iter().filter(|(_, value)| !value.trim().is_empty()) {
        let value = value.trim();
        match name.to_ascii_uppercase().as_str() {
            "PHASE" => filter.phases.push(phase(value)?),
            "AFTER" => filter.after = filter.after.max(Some(instant("AFTER", value)?)),
            "LAST" => filter.last = Some(filter.last.unwrap_or(usize::MAX).min(last(value)?)),
            _ => {}
        }
    }
    Ok(filter)
}

/// A phase's name.
pub(super) fn phase(value: &str) -> Result<Phase, Fault> {
    Phase::named(value).ok_or_else(|| wrong("PHASE", value, "a phase's name, such as EXECUTING"))
}

/// An instant in UTC.
pub(super) fn instant(name: &str, value: &str) -> Result<Timestamp, Fault> {
    let parsed = time::Timestamp::parse(value).map(|at| Timestamp::from_micros(at.0));
    parsed.ok_or_else(|| wrong(name, value, "an instant in UTC, such as 2026-01-31T23:59:59Z"))
}

fn last(value: &str) -> Result<usize, Fault> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let count = if digits { value.parse().unwrap_or(usize::MAX) } else { 0 };
    if count == 0 { Err(wrong("LAST", value, "a whole number of jobs above zero")) } else { Ok(count) }
}

/// The document; `list` is the URL of the list.
pub(super) fn document(jobs: &[Job], list: &str) -> String {
    let mut out = document::begin("uws:jobs", " version=\"1.1\"", 512 + jobs.len() * 320);
    for job in jobs {
        out.push_str("<uws:jobref");
        xml::attribute(&mut out, "id", job.id.as_str());
        xml::attribute(&mut out, "xlink:type", "simple");
        xml::attribute(&mut out, "xlink:href", &format!("{list}/{}", job.id));
        out.push('>');
        xml::element(&mut out, "uws:phase", job.phase.name());
        xml::optional(&mut out, "uws:runId", document::run_id(job));
        document::owner(&mut out, job);
        xml::element(&mut out, "uws:creationTime", &document::instant(job.created));
        out.push_str("</uws:jobref>\n");
    }
    out.push_str("</uws:jobs>\n");
    out
}
