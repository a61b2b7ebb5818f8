//! What a request wants of a job, and what a job keeps of it.
//!
//! Everything in a form that does not steer the job is a parameter of its query, kept as it was written and looked at
//! when the job runs. Tables that come with the form are kept in the job's store, under the name of their part: those
//! that UPLOAD refers to by now, and those that are nothing but files. UPLOAD adds up over several requests (TAP 1.1
//! 2.7.6), so a file and the UPLOAD that refers to it need not come together.

use std::time::Duration;

use bytes::Bytes;
use trifid_archive_engine::jobs::{Job, JobError, Jobs, Owner};
use trifid_base_runtime::Timestamp;

use super::{Resource, list, wrong};
use crate::fault::{Fault, quoted};
use crate::form::{File, Form};
use crate::limits::{JOB_PARAMETERS_BYTES_MAX, JOB_PART_NAME_BYTES_MAX, PAIRS_MAX};

/// What PHASE orders (UWS 1.1 2.2.3.5 and 2.2.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// RUN.
    Run,
    /// ABORT.
    Abort,
}

/// What a request wants.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    /// PHASE.
    pub(crate) phase: Option<Order>,
    /// ACTION=DELETE.
    pub(crate) delete: bool,
    /// DESTRUCTION.
    pub(crate) destruction: Option<Timestamp>,
    /// EXECUTIONDURATION.
    pub(crate) execution: Option<Duration>,
    /// Everything else.
    pub(crate) parameters: Vec<(String, String)>,
    /// Files as they are kept.
    pub(crate) parts: Vec<(String, Bytes)>,
}

impl Wish {
    /// Reads a form that is for a job with these parameters.
    pub(crate) fn read(form: Form<'_>, known: &[(String, String)]) -> Result<Self, Fault> {
        let mut wish = Self::default();
        let Form { pairs, files } = form;
        for (name, value) in pairs {
            match name.to_ascii_uppercase().as_str() {
                "PHASE" => wish.phase = Some(order(&value)?),
                "ACTION" => wish.delete = is_delete(&value)?,
                "DESTRUCTION" => wish.destruction = Some(list::instant("DESTRUCTION", &value)?),
                "EXECUTIONDURATION" => wish.execution = Some(execution(&value)?),
                _ => wish.parameters.push((name.into_owned(), value.into_owned())),
            }
        }
        wish.take(files, known)?;
        bounded(known.iter().chain(&wish.parameters))?;
        Ok(wish)
    }

    /// Takes the files that are to be kept. A part that is neither named a file nor a table by its type is a
    /// parameter, unless UPLOAD refers to it.
    fn take(&mut self, files: Vec<File>, known: &[(String, String)]) -> Result<(), Fault> {
        let is_upload = |part: &str| {
            let mut referred = labels(known).into_iter().chain(labels(&self.parameters));
            referred.any(|label| label.eq_ignore_ascii_case(part))
        };
        let mut uploads = Vec::new();
        for file in files {
            let is_referred = is_upload(&file.part);
            if is_referred || self.parameters.iter().all(|(name, _)| *name != file.part) {
                let label = checked_label(&file.part)?;
                self.parts.push((label, Kept::pack(&file)));
            }
            if is_referred {
                uploads.push(file.part);
            }
        }
        self.parameters.retain(|(name, _)| !uploads.contains(name));
        Ok(())
    }

    /// The wish as this resource takes it: what is not for it is passed over, what it needs must be there.
    pub(super) fn at(self, resource: Resource) -> Result<Self, Fault> {
        let missing =
            |name: &str, wanted: &str| Fault::invalid(format!("the parameter {name} is missing: {wanted}"));
        let nothing = Self::default;
        match resource {
            Resource::Phase if self.phase.is_none() => Err(missing("PHASE", "RUN or ABORT")),
            Resource::Phase => Ok(Self { phase: self.phase, ..nothing() }),
            Resource::Destruction if self.destruction.is_none() => {
                Err(missing("DESTRUCTION", "an instant in UTC"))
            }
            Resource::Destruction => Ok(Self { destruction: self.destruction, ..nothing() }),
            Resource::ExecutionDuration if self.execution.is_none() => {
                Err(missing("EXECUTIONDURATION", "a number of seconds"))
            }
            Resource::ExecutionDuration => Ok(Self { execution: self.execution, ..nothing() }),
            _ => Ok(self),
        }
    }

    /// Does what is wanted, parameters first.
    pub(super) async fn grant(self, jobs: &Jobs, id: &str, owner: &Owner) -> Result<(), JobError> {
        if self.delete {
            return jobs.delete(id, owner).await;
        }
        if !self.parameters.is_empty() || !self.parts.is_empty() {
            jobs.amend(id, owner, self.parameters, self.parts).await?;
        }
        if let Some(time) = self.execution {
            jobs.set_execution(id, owner, time).await?;
        }
        if let Some(at) = self.destruction {
            jobs.set_destruction(id, owner, at).await?;
        }
        match self.phase {
            Some(Order::Run) => jobs.run(id, owner).await,
            Some(Order::Abort) => jobs.abort(id, owner).await,
            None => Ok(()),
        }
    }
}

fn order(value: &str) -> Result<Order, Fault> {
    match value.trim() {
        "RUN" => Ok(Order::Run),
        "ABORT" => Ok(Order::Abort),
        other => Err(wrong("PHASE", other, "RUN or ABORT")),
    }
}

fn is_delete(value: &str) -> Result<bool, Fault> {
    match value.trim() {
        "" => Ok(false),
        "DELETE" => Ok(true),
        other => Err(wrong("ACTION", other, "DELETE")),
    }
}

/// Seconds; more than can be counted is as long as allowed.
fn execution(value: &str) -> Result<Duration, Fault> {
    let digits = value.trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("EXECUTIONDURATION", value, "a whole number of seconds, 0 for as long as allowed"));
    }
    Ok(Duration::from_secs(digits.parse().unwrap_or(u64::MAX)))
}

/// All parameters of a job stay within what one request may have.
fn bounded<'p>(parameters: impl Iterator<Item = &'p (String, String)>) -> Result<(), Fault> {
    let (mut count, mut bytes) = (0, 0);
    for (name, value) in parameters {
        count += 1;
        bytes += name.len() + value.len();
    }
    if count > PAIRS_MAX {
        return Err(Fault::invalid(format!("a job has {PAIRS_MAX} parameters at most")));
    }
    if bytes > JOB_PARAMETERS_BYTES_MAX {
        let most = JOB_PARAMETERS_BYTES_MAX;
        return Err(Fault::too_large(format!("the parameters of a job may have {most} bytes together")));
    }
    Ok(())
}

/// The parts that the values of UPLOAD refer to. What is malformed is told when the job runs.
pub(crate) fn labels(parameters: &[(String, String)]) -> Vec<&str> {
    let uploads = parameters.iter().filter(|(name, _)| name.eq_ignore_ascii_case("UPLOAD"));
    let items = uploads.flat_map(|(_, value)| value.split(';'));
    let mut labels: Vec<&str> = Vec::new();
    for label in items.filter_map(|item| label(item.split_once(',')?.1.trim())) {
        if labels.iter().all(|known| !known.eq_ignore_ascii_case(label)) {
            labels.push(label);
        }
    }
    labels
}

fn label(uri: &str) -> Option<&str> {
    let (scheme, label) = uri.split_once(':')?;
    (scheme.eq_ignore_ascii_case("param") && !label.is_empty()).then_some(label)
}

/// The name under which a part is kept: clients are not careful with its case.
pub(crate) fn kept_label(label: &str) -> String {
    label.to_ascii_lowercase()
}

fn checked_label(part: &str) -> Result<String, Fault> {
    if part.len() > JOB_PART_NAME_BYTES_MAX {
        return Err(Fault::invalid(format!(
            "the name of an uploaded part may have {JOB_PART_NAME_BYTES_MAX} bytes; {} has more",
            quoted(part)
        )));
    }
    Ok(kept_label(part))
}

/// A file as a job keeps it: a line with its media type, then its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The media type, where the client said it.
    pub(crate) media: Option<String>,
    /// The bytes.
    pub(crate) bytes: Bytes,
}

impl Kept {
    fn pack(file: &File) -> Bytes {
        let media = file.media.as_deref().unwrap_or_default();
        let line = media.lines().next().unwrap_or_default();
        [line.as_bytes(), b"\n", &file.bytes].concat().into()
    }

    /// Reads what was packed.
    pub(crate) fn read(packed: &Bytes) -> Self {
        let end = memchr::memchr(b'\n', packed).unwrap_or(0);
        let media = std::str::from_utf8(&packed[..end]).ok().filter(|media| !media.is_empty());
        let bytes = packed.slice((end + 1).min(packed.len())..);
        Self { media: media.map(str::to_owned), bytes }
    }

    /// The file, for the parameter that refers to it as `label`.
    pub(crate) fn into_file(self, label: &str) -> File {
        File { part: label.to_owned(), media: self.media, bytes: self.bytes }
    }
}

/// The request that a job holds, its files apart.
pub(crate) fn form(job: &Job) -> Result<Form<'_>, Fault> {
    let mut form = Form::default();
    for (name, value) in &job.parameters {
        form.push(name.as_str().into(), value.as_str().into())?;
    }
    Ok(form)
}
