//! The documents about one job, in the order of the schema (UWS 1.1 appendix B).
//!
//! Every URL is absolute and begins with what the client used (the list's URL is given): a document that was saved, or
//! read through a proxy, leads back here.

use std::time::Duration;

use trifid_archive_engine::jobs::{Fault, Job, JobResult};
use trifid_archive_model::time;
use trifid_base_runtime::Timestamp;

use super::wish;
use crate::limits::RUN_ID_CHARS_MAX;
use crate::{percent, xml};

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// The namespaces of a document's first element.
const NAMESPACES: &str = " xmlns:uws=\"http://www.ivoa.net/xml/UWS/v1.0\" \
     xmlns:xlink=\"http://www.w3.org/1999/xlink\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";

/// Begins a document whose first element is `element`, with `more` attributes.
pub(super) fn begin(element: &str, more: &str, capacity: usize) -> String {
    let mut out = String::with_capacity(capacity);
    for piece in [DECLARATION, "<", element, more, NAMESPACES, ">\n"] {
        out.push_str(piece);
    }
    out
}

/// An instant, in UTC with its mark (UWS 1.1 2.2.1).
pub(super) fn instant(at: Timestamp) -> String {
    format!("{}Z", time::Timestamp(at.micros()))
}

/// A time in whole seconds, as far as the schema's `int` goes.
pub(super) fn seconds(time: Duration) -> String {
    time.as_secs().min(i32::MAX as u64).to_string()
}

/// RUNID as it is told: what was kept of it (UWS 1.1 2.1.9, DALI 1.1 3.4.6).
pub(super) fn run_id(job: &Job) -> Option<&str> {
    let value = job.parameter("RUNID").filter(|value| !value.is_empty())?;
    Some(value.char_indices().nth(RUN_ID_CHARS_MAX).map_or(value, |(end, _)| &value[..end]))
}

/// The owner, or that there is none.
pub(super) fn owner(out: &mut String, job: &Job) {
    known_or_nil(out, "uws:ownerId", job.owner.as_deref());
}

fn known_or_nil(out: &mut String, name: &str, value: Option<&str>) {
    match value {
        Some(value) => xml::element(out, name, value),
        None => {
            for piece in ["<", name, " xsi:nil=\"true\"/>"] {
                out.push_str(piece);
            }
        }
    }
    out.push('\n');
}

/// The job (UWS 1.1 2.2.2.2 and, for its version, UWS 1.1 2.2.1.1); `list` is the URL of the list.
pub(crate) fn job(job: &Job, list: &str) -> String {
    let mut out = begin("uws:job", " version=\"1.1\"", 2048);
    line(&mut out, "uws:jobId", job.id.as_str());
    if let Some(run_id) = run_id(job) {
        line(&mut out, "uws:runId", run_id);
    }
    owner(&mut out, job);
    line(&mut out, "uws:phase", job.phase.name());
    // UWS 1.1 2.1.6: nobody knows how long a query takes.
    known_or_nil(&mut out, "uws:quote", None);
    line(&mut out, "uws:creationTime", &instant(job.created));
    known_or_nil(&mut out, "uws:startTime", job.started.map(instant).as_deref());
    known_or_nil(&mut out, "uws:endTime", job.ended.map(instant).as_deref());
    line(&mut out, "uws:executionDuration", &seconds(job.execution));
    line(&mut out, "uws:destruction", &instant(job.destruction));
    out.push_str("<uws:parameters>\n");
    each_parameter(&mut out, job, list);
    out.push_str("</uws:parameters>\n<uws:results>\n");
    each_result(&mut out, job, list);
    out.push_str("</uws:results>\n");
    if let Some(fault) = &job.fault {
        summary(&mut out, fault);
    }
    info(&mut out, &job.results);
    out.push_str("</uws:job>\n");
    out
}

fn line(out: &mut String, name: &str, value: &str) {
    xml::element(out, name, value);
    out.push('\n');
}

/// The parameters alone (UWS 1.1 2.2.2.4).
pub(super) fn parameters(job: &Job, list: &str) -> String {
    let mut out = begin("uws:parameters", "", 1024);
    each_parameter(&mut out, job, list);
    out.push_str("</uws:parameters>\n");
    out
}

fn each_parameter(out: &mut String, job: &Job, list: &str) {
    for (name, value) in &job.parameters {
        parameter(out, name, false, value);
    }
    // UWS 1.1 2.2.3.1.1: what was uploaded, by reference.
    for label in wish::labels(&job.parameters) {
        if job.parameter(label).is_none() {
            parameter(out, label, true, &below(list, job, "parameters", label));
        }
    }
}

fn parameter(out: &mut String, name: &str, by_reference: bool, value: &str) {
    out.push_str("<uws:parameter");
    xml::attribute(out, "id", name);
    if by_reference {
        out.push_str(" byReference=\"true\"");
    }
    out.push('>');
    xml::text(out, value);
    out.push_str("</uws:parameter>\n");
}

/// The results alone.
pub(super) fn results(job: &Job, list: &str) -> String {
    let mut out = begin("uws:results", "", 1024);
    each_result(&mut out, job, list);
    out.push_str("</uws:results>\n");
    out
}

fn each_result(out: &mut String, job: &Job, list: &str) {
    for result in &job.results {
        out.push_str("<uws:result");
        xml::attribute(out, "id", &result.name);
        xml::attribute(out, "xlink:type", "simple");
        xml::attribute(out, "xlink:href", &below(list, job, "results", &result.name));
        xml::attribute(out, "size", &result.bytes.to_string());
        xml::attribute(out, "mime-type", &result.media_type);
        out.push_str("/>\n");
    }
}

/// The URL of something of a job.
fn below(list: &str, job: &Job, of: &str, name: &str) -> String {
    let mut url = format!("{list}/{}/{of}/", job.id);
    percent::encode(&mut url, name);
    url
}

fn summary(out: &mut String, fault: &Fault) {
    out.push_str("<uws:errorSummary");
    xml::attribute(out, "type", if fault.transient { "transient" } else { "fatal" });
    xml::attribute(out, "hasDetail", "true");
    out.push('>');
    xml::element(out, "uws:message", &fault.message);
    out.push_str("</uws:errorSummary>\n");
}

/// What the schema has no place for: rows, and whether some were withheld.
fn info(out: &mut String, results: &[JobResult]) {
    if results.is_empty() {
        return;
    }
    out.push_str("<uws:jobInfo>\n");
    for result in results {
        out.push_str("<rows xmlns=\"\"");
        xml::attribute(out, "of", &result.name);
        xml::attribute(out, "overflow", if result.overflow { "true" } else { "false" });
        out.push('>');
        xml::text(out, &result.rows.to_string());
        out.push_str("</rows>\n");
    }
    out.push_str("</uws:jobInfo>\n");
}
