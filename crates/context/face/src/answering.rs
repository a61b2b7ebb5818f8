//! An answer made of entities: what the request says about its form, and the buffer that it is written to.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderValue, StatusCode};
use trifid_context_model::ld::Context;
use trifid_context_model::query::lang::LanguagePreferences;
use trifid_context_model::record::Record;
use trifid_context_model::render::{Join, Renderer, Style};

use crate::conformance::Downgrade;
use crate::exchange::{Asked, Exchange};
use crate::limits::{ANSWER_BYTES_MAX, LINKED_ENTITIES_MAX};
use crate::linked::Found;
use crate::media::Media;
use crate::params::Params;
use crate::prefer::Prefer;
use crate::present::{self, JoinForm, Joining};
use crate::problem::{Kind, Problem, Refusal};
use crate::reply::Reply;

/// The form of an answer.
#[derive(Debug)]
pub(crate) struct Answering<'x> {
    exchange: &'x Exchange<'x>,
    media: Media,
    asked: Asked,
    style: Style<'static>,
    lang: Option<LanguagePreferences>,
    pub(crate) joining: Option<Joining>,
    prefer: Prefer,
    /// Some entity was rewritten for an earlier version of the standard.
    altered: AtomicBool,
}

impl<'x> Answering<'x> {
    /// Reads what the parameters and headers say.
    pub(crate) fn new(
        exchange: &'x Exchange<'x>,
        params: &Params<'_>,
        media: Media,
        asked: Asked,
    ) -> Result<Self, Refusal> {
        let joining = present::joining(params)?;
        let levels = joining.as_ref().map_or(0, |joining| joining.levels);
        let symbols = exchange.broker.symbols();
        Ok(Answering {
            style: present::style(params, media, &asked.context, symbols, levels)?,
            lang: present::language(params)?,
            prefer: exchange.prefer(),
            exchange,
            media,
            asked,
            joining,
            altered: AtomicBool::new(false),
        })
    }

    /// The context of the request.
    pub(crate) fn context(&self) -> &Context {
        &self.asked.context
    }

    /// Linked entities in a row that are retrieved.
    pub(crate) fn levels(&self) -> usize {
        self.joining.as_ref().map_or(0, |joining| joining.levels)
    }

    /// Whether the body carries the context (6.3.6): in GeoJSON it does unless the client prefers otherwise.
    fn has_context_inside(&self) -> bool {
        match self.media {
            Media::Json => false,
            Media::LdJson => true,
            Media::GeoJson => self.prefer.body != Some(Media::Json),
        }
    }

    /// The style with what it borrows.
    pub(crate) fn style(&self) -> Style<'_> {
        let mut style: Style<'_> = self.style.clone();
        style.lang = self.lang.as_ref();
        style.context = self.has_context_inside().then(|| self.context().json().as_bytes());
        style
    }

    /// Renders entities in `style`.
    pub(crate) fn renderer<'r>(&'r self, style: &'r Style<'r>) -> Renderer<'r> {
        let symbols = self.exchange.broker.symbols();
        Renderer { context: self.context(), symbols, now: self.exchange.now, style }
    }

    /// The entity as the client understands it: rewritten for an earlier version of the standard (4.3.6.8).
    #[inline]
    pub(crate) fn fit<'a>(&self, record: &'a Record) -> Cow<'a, Record> {
        let rewrite = |version| Downgrade::to(version, self.context())?.apply(record);
        let Some(rewritten) = self.prefer.version.and_then(rewrite) else { return Cow::Borrowed(record) };
        self.altered.store(true, Ordering::Relaxed);
        Cow::Owned(rewritten)
    }

    /// Writes with the entities that `roots` link to.
    pub(crate) async fn joined(
        &self,
        joining: &Joining,
        roots: &[Record],
        write: impl FnOnce(&mut Join<'_>, &[Record]),
    ) -> Result<(), Refusal> {
        let found = Box::pin(Found::from(self.exchange, roots, joining.levels)).await?;
        let roots: Vec<Record> = roots.iter().map(|root| self.fit(root).into_owned()).collect();
        let mut resolve = |id: &str| Some(self.fit(&found.get(id)?).into_owned());
        let join = Join::new(joining.levels, LINKED_ENTITIES_MAX, &mut resolve);
        write(&mut join.contained_by(joining.contained_by.iter().cloned()), &roots);
        Ok(())
    }

    /// The answer with this body.
    pub(crate) fn reply(&self, body: Vec<u8>) -> Reply {
        let altered = self.altered.load(Ordering::Relaxed);
        Reply {
            status: if altered { StatusCode::NON_AUTHORITATIVE_INFORMATION } else { StatusCode::OK },
            body,
            media: Some(self.media),
            link: if self.has_context_inside() { None } else { self.asked.link() },
            applied: self.applied(),
            ..Reply::default()
        }
    }

    /// The preference that was followed (6.3.6, RFC 7240 section 3).
    fn applied(&self) -> Option<HeaderValue> {
        let body = self.prefer.body.filter(|_| self.media == Media::GeoJson);
        let body = body.map(|media| if media == Media::Json { "body=json" } else { "body=ld+json" });
        match (self.prefer.version, body) {
            (None, None) => None,
            (None, Some(body)) => Some(HeaderValue::from_static(body)),
            (Some(version), None) => HeaderValue::try_from(version.to_string()).ok(),
            (Some(version), Some(body)) => HeaderValue::try_from(format!("{version}, {body}")).ok(),
        }
    }
}

/// Refuses an answer that has grown beyond what one may hold.
pub(crate) fn check_size(bytes: usize) -> Result<(), Refusal> {
    if bytes <= ANSWER_BYTES_MAX {
        return Ok(());
    }
    let detail = format!(
        "the entities of this answer take more than {ANSWER_BYTES_MAX} bytes; ask for fewer with `limit`, or for \
         less of each with `pick`"
    );
    Err(Problem::new(Kind::TooManyResults, detail).into())
}

/// Writes a list of entities with those that they link to.
pub(crate) fn write_list(
    renderer: &Renderer<'_>,
    roots: &[Record],
    join: &mut Join<'_>,
    form: JoinForm,
    out: &mut Vec<u8>,
) {
    renderer.open_list(out);
    match form {
        JoinForm::Inline => roots.iter().for_each(|root| {
            if out.len() <= ANSWER_BYTES_MAX {
                renderer.item_joined(root, join, out);
            }
        }),
        JoinForm::Flat => {
            roots.iter().for_each(|root| {
                renderer.item(root, out);
            });
            renderer.linked(roots, join).iter().for_each(|linked| {
                renderer.linked_item(linked, out);
            });
        }
    }
    renderer.close_list(out);
}

/// Writes one entity; in the flat form as a list as soon as it links to something (4.5.23.3). False when
/// nothing of it is left.
pub(crate) fn write_one(
    renderer: &Renderer<'_>,
    root: &Record,
    join: &mut Join<'_>,
    form: JoinForm,
    out: &mut Vec<u8>,
) -> bool {
    if form == JoinForm::Inline {
        return renderer.entity_joined(root, join, out);
    }
    let linked = renderer.linked(std::slice::from_ref(root), join);
    if linked.is_empty() {
        return renderer.entity(root, out);
    }
    renderer.open_list(out);
    let mut shown = renderer.item(root, out);
    for linked in &linked {
        shown |= renderer.linked_item(linked, out);
    }
    renderer.close_list(out);
    shown
}

thread_local! {
    /// The size of this core's last list.
    static LAST_LIST: Cell<usize> = const { Cell::new(4096) };
}

/// A buffer for a list, as large as the last one needed.
pub(crate) fn list_buffer() -> Vec<u8> {
    Vec::with_capacity(LAST_LIST.get())
}

/// Remembers the size of a list.
pub(crate) fn note_list(out: &[u8]) {
    LAST_LIST.set(out.len().clamp(256, 1 << 20));
}
