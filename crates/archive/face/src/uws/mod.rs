//! Jobs over HTTP: the Universal Worker Service under `/tap/async` (UWS 1.1, TAP 1.1 2.2).
//!
//! ```text
//! request -> Resource -> Desk --reads-->  documents (list, job), texts, results
//!                             --wishes--> Jobs (the engine's), then 303 to what came of it
//! ```
//!
//! The life of a job is the engine's; here is how it is told and asked for. Whoever waits for a job holds a future. A
//! request that changes something is seen through even if its client leaves. Nobody sees another owner's jobs, not even
//! that they are there: they are 404, like those that never were.
//!
//! None of this waits for the pool in which queries run: the state of a job is memory, its store is called on threads
//! that may block, and the rest runs on the core that serves. A job can be watched and aborted however busy queries
//! are.
//!
//! A result is sent from its file piece by piece, in full or from any byte on (RFC 9110 14), so that a client whose
//! connection broke can go on where it was.

pub(crate) mod document;
mod list;
mod range;
mod results;
#[cfg(test)]
mod tests;
mod wait;
mod wish;

use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, StatusCode};
use trifid_archive_engine::jobs::{Job, JobError, Jobs, NewJob, Owner, StoreError};
use trifid_base_web::{Body, Request, Response};

use crate::fault::{ErrorForm, Fault, VOTABLE, quoted};
use crate::form::Form;
use crate::{ArchiveFace, percent, xml};

pub(crate) use range::{Wanted, wanted};
pub(crate) use wish::{Kept, Order, Wish, form, kept_label, labels};

/// The parameter of a path that names a job.
pub(crate) const JOB: &str = "job";
/// The parameter of a path that names a parameter or a result of a job.
pub(crate) const NAME: &str = "name";

/// A resource of the service (UWS 1.1 2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// The list of jobs.
    List,
    /// A job.
    Job,
    /// Where it is in its life.
    Phase,
    /// How long it may run.
    ExecutionDuration,
    /// When it is destroyed.
    Destruction,
    /// When it will be done; nobody knows.
    Quote,
    /// Whose it is.
    Owner,
    /// What it was asked.
    Parameters,
    /// One thing of that.
    Parameter,
    /// What it left.
    Results,
    /// One thing of that.
    Result,
    /// Why it failed.
    Error,
}

/// The paths below the door's root, the methods that they take, what they name.
pub(crate) const ROUTES: &[(&str, &[Method], Resource)] = {
    use Resource as R;
    const READ: &[Method] = &[Method::GET];
    const CHANGE: &[Method] = &[Method::GET, Method::POST];
    &[
        ("/async", CHANGE, R::List),
        ("/async/{job}", &[Method::GET, Method::POST, Method::DELETE], R::Job),
        ("/async/{job}/phase", CHANGE, R::Phase),
        ("/async/{job}/executionduration", CHANGE, R::ExecutionDuration),
        ("/async/{job}/destruction", CHANGE, R::Destruction),
        ("/async/{job}/quote", READ, R::Quote),
        ("/async/{job}/owner", READ, R::Owner),
        ("/async/{job}/parameters", CHANGE, R::Parameters),
        ("/async/{job}/parameters/{name}", READ, R::Parameter),
        ("/async/{job}/results", READ, R::Results),
        ("/async/{job}/results/{name}", READ, R::Result),
        ("/async/{job}/error", READ, R::Error),
    ]
};

impl ArchiveFace {
    /// Answers a request about jobs; `id` and `name` are as the path has them.
    pub(crate) async fn uws(
        &self,
        request: &Request,
        resource: Resource,
        id: &str,
        name: &str,
    ) -> Result<Response, Fault> {
        let jobs = self.uws.as_ref().ok_or_else(|| Fault::not_found("this service has no jobs"))?;
        let list = format!("{}/async", self.settings.origin.root(request)?);
        let desk = Desk { face: self, jobs, request, owner: request.principal.name.clone(), list };
        match (&request.method, resource) {
            (&Method::POST, Resource::List) => desk.create().await,
            (&Method::POST, resource) => desk.change(id, resource).await,
            (&Method::DELETE, _) => desk.delete(id).await,
            (_, resource) => desk.read(id, name, resource).await,
        }
    }
}

/// One request about jobs.
struct Desk<'r> {
    face: &'r ArchiveFace,
    jobs: &'r Jobs,
    request: &'r Request,
    /// Who asks.
    owner: Owner,
    /// The URL of the list, as this client should use it.
    list: String,
}

impl Desk<'_> {
    async fn read(&self, id: &str, name: &str, resource: Resource) -> Result<Response, Fault> {
        match resource {
            Resource::List => self.list(),
            Resource::Job => {
                let job = self.waited(id).await?;
                Ok(crate::xml(document::job(&job, &self.list)))
            }
            Resource::Result => self.result(&self.job(id)?, name).await,
            Resource::Parameter => self.parameter(&self.job(id)?, name).await,
            Resource::Phase => Ok(text(self.job(id)?.phase.name())),
            Resource::ExecutionDuration => Ok(text(document::seconds(self.job(id)?.execution))),
            Resource::Destruction => Ok(text(document::instant(self.job(id)?.destruction))),
            // UWS 1.1 2.2.1: nothing, if there is no quote.
            Resource::Quote => self.job(id).map(|_| text("")),
            Resource::Owner => Ok(text(self.job(id)?.owner.as_deref().unwrap_or_default())),
            Resource::Parameters => Ok(crate::xml(document::parameters(&self.job(id)?, &self.list))),
            Resource::Results => Ok(crate::xml(document::results(&self.job(id)?, &self.list))),
            Resource::Error => Ok(error(&self.job(id)?)),
        }
    }

    fn job(&self, id: &str) -> Result<Job, Fault> {
        Ok(self.jobs.get(id, &self.owner)?)
    }

    /// UWS 1.1 2.2.2.1.
    fn list(&self) -> Result<Response, Fault> {
        let filter = list::filter(self.request.query().unwrap_or_default())?;
        let jobs = self.jobs.list(&self.owner, &filter);
        Ok(crate::xml(list::document(&jobs, &self.list)))
    }

    /// The job as it is, or as it is after waiting for it (UWS 1.1 2.2.1.2).
    async fn waited(&self, id: &str) -> Result<Job, Fault> {
        let query = self.request.query().unwrap_or_default();
        match wait::asked(query, self.face.settings.wait_limit)? {
            None => self.job(id),
            Some(wait) => Ok(self.jobs.wait(id, &self.owner, wait.reference, wait.time).await?),
        }
    }

    /// One parameter as it was given, or a table that was uploaded (UWS 1.1 2.2.3.1.1).
    async fn parameter(&self, job: &Job, raw: &str) -> Result<Response, Fault> {
        let unknown = || Fault::not_found("the job has no such parameter");
        let name = percent::segment(raw).ok_or_else(unknown)?;
        let same = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(&name);
        let values: Vec<&str> = job.parameters.iter().filter(same).map(|(_, value)| value.as_str()).collect();
        if !values.is_empty() {
            // Only UPLOAD adds up, and several of its values are one with semicolons between.
            return Ok(text(values.join(";")));
        }
        let label = wish::labels(&job.parameters).into_iter().find(|label| label.eq_ignore_ascii_case(&name));
        let label = label.ok_or_else(unknown)?;
        let part = self.jobs.part(job.id.as_str(), &self.owner, &wish::kept_label(label)).await?;
        Ok(uploaded(Kept::read(&part)))
    }

    /// UWS 1.1 2.2.3.1: any parameters, or none; they are looked at when the job runs (TAP 1.1 2.7).
    async fn create(&self) -> Result<Response, Fault> {
        let wish = Wish::read(Form::read(self.request)?, &[])?;
        let run = match wish.phase {
            _ if wish.delete => return Err(Fault::invalid("there is no job yet that ACTION could delete")),
            Some(Order::Abort) => return Err(Fault::invalid("a new job can be asked to RUN, not to ABORT")),
            phase => phase.is_some(),
        };
        let new = NewJob {
            owner: self.owner.clone(),
            parameters: wish.parameters,
            parts: wish.parts,
            execution: wish.execution,
            destruction: wish.destruction,
            run,
        };
        let jobs = self.jobs.clone();
        let job = self.seen_through(async move { jobs.submit(new).await }).await?;
        Ok(see(&self.url(&job)))
    }

    /// UWS 1.1 2.2.3.2 to 2.2.3.6 and 2.1.11.
    async fn change(&self, id: &str, resource: Resource) -> Result<Response, Fault> {
        let job = self.job(id)?;
        let wish = Wish::read(Form::read(self.request)?, &job.parameters)?.at(resource)?;
        let to = if wish.delete { self.list.clone() } else { self.url(&job) };
        let (jobs, owner) = (self.jobs.clone(), self.owner.clone());
        self.seen_through(async move { wish.grant(&jobs, job.id.as_str(), &owner).await }).await?;
        Ok(see(&to))
    }

    /// UWS 1.1 2.2.3.2.
    async fn delete(&self, id: &str) -> Result<Response, Fault> {
        let (jobs, owner, id) = (self.jobs.clone(), self.owner.clone(), id.to_owned());
        self.seen_through(async move { jobs.delete(&id, &owner).await }).await?;
        Ok(see(&self.list))
    }

    /// Does what must not be half done when the client leaves, beside its request and not in it.
    async fn seen_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, JobError>> + Send + 'static,
    ) -> Result<T, Fault> {
        Ok(tokio::spawn(work).await.map_err(Fault::internal)??)
    }

    fn url(&self, job: &Job) -> String {
        format!("{}/{}", self.list, job.id)
    }
}

/// The one table from what the jobs refuse to what HTTP answers.
impl From<JobError> for Fault {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Unknown => Self::not_found("there is no such job, or no such part of it"),
            // UWS 1.1 2.2: illegal in the present state.
            JobError::Phase { .. } => Self::Forbidden(error.to_string().into()),
            JobError::TooMany(message) => Self::Busy(message.into()),
            JobError::Store(StoreError::Missing) => Self::not_found("the job does not have that any more"),
            JobError::Store(error @ StoreError::Failed(_)) => Self::internal(error),
        }
    }
}

/// 303: what came of it is over there.
fn see(url: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    // The host was checked, the rest is ours or the operator's.
    if let Ok(location) = HeaderValue::from_str(url) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// UWS 1.1 2.2.2: simple things are text.
fn text(value: impl Into<String>) -> Response {
    let mut response = Response::new(Body::full(value.into()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A file as it was uploaded. Never shown by a browser: it may be anything.
fn uploaded(kept: Kept) -> Response {
    let mut response = Response::new(Body::full(kept.bytes));
    let headers = response.headers_mut();
    let media = kept.media.as_deref().and_then(|media| HeaderValue::from_str(media).ok());
    headers.insert(CONTENT_TYPE, media.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The error document: it is there and can be read whatever became of the job (UWS 1.1 2.2.2.5, DALI 1.1 4.2).
fn error(job: &Job) -> Response {
    let document = match &job.fault {
        Some(fault) => ErrorForm::default().document(&fault.message),
        None => no_error(job),
    };
    let mut response = Response::new(Body::full(document));
    response.headers_mut().insert(CONTENT_TYPE, VOTABLE);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn no_error(job: &Job) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <VOTABLE version=\"1.4\" xmlns=\"http://www.ivoa.net/xml/VOTable/v1.3\">\n\
         <RESOURCE type=\"results\">\n<INFO name=\"QUERY_STATUS\" value=\"OK\">"
        .to_owned();
    xml::text(&mut out, &format!("the job is {} and has no error", job.phase));
    out.push_str("</INFO>\n</RESOURCE>\n</VOTABLE>\n");
    out
}

/// Reads a request as one about jobs, in all ways.
pub(crate) fn fuzz(request: &Request, form: &Form<'_>) {
    let query = request.query().unwrap_or_default();
    let _ = (list::filter(query), wait::asked(query, std::time::Duration::MAX));
    let _ = wanted(&request.headers, query.len() as u64, &HeaderValue::from_static("\"-\""));
    let _ = Wish::read(form.clone(), &[]);
    let _ = Kept::read(&request.body);
}

/// What a parameter should have been.
fn wrong(name: &str, value: &str, wanted: &str) -> Fault {
    Fault::invalid(format!("the parameter {name} takes {wanted}, not {}", quoted(value)))
}
