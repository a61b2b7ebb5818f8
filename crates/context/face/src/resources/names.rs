//! What the discovery resources have in common: documents about names of types and attributes.

use trifid_context_model::ld::Context;
use trifid_context_model::record::Kind;
use trifid_context_model::symbol::{Symbol, Symbols};

use crate::exchange::{Asked, Exchange};
use crate::media::{Media, PLAIN_MEDIA};
use crate::params::{Param, Set};
use crate::problem::Refusal;
use crate::reply::Reply;
use crate::write;

/// What the lists take (6.25.3.1, 6.27.3.1).
pub(crate) const LIST: Set = Set::of(&[Param::Details, Param::Local]);

/// A discovery request.
#[derive(Debug)]
pub(crate) struct Discovering<'x> {
    pub(crate) asked: Asked,
    pub(crate) details: bool,
    media: Media,
    symbols: &'x Symbols,
}

impl<'x> Discovering<'x> {
    /// Reads the request.
    pub(crate) async fn new(exchange: &'x Exchange<'_>, allowed: Set) -> Result<Self, Refusal> {
        let params = exchange.params(allowed)?;
        super::check_local(&params)?;
        let details = params.boolean(Param::Details)?;
        let media = exchange.media(PLAIN_MEDIA)?;
        let asked = exchange.header_context().await?;
        Ok(Discovering { asked, details, media, symbols: exchange.broker.symbols() })
    }

    fn context(&self) -> &Context {
        &self.asked.context
    }

    /// The answer with this body.
    pub(crate) fn reply(&self, body: Vec<u8>) -> Reply {
        let link = if self.media == Media::LdJson { None } else { self.asked.link() };
        Reply { body, media: Some(self.media), link, ..Reply::default() }
    }

    /// Appends the compacted name.
    pub(crate) fn name(&self, out: &mut Vec<u8>, name: Symbol) {
        out.extend_from_slice(self.context().key(self.symbols, name));
    }

    /// Appends a member with a list of names.
    pub(crate) fn names(&self, out: &mut Vec<u8>, member: &str, names: impl Iterator<Item = Symbol>) {
        open_member(out, member);
        write::array(out, names, |out, name| self.name(out, name));
    }

    /// Appends the member `attributeTypes`.
    pub(crate) fn kinds(&self, out: &mut Vec<u8>, kinds: &[Kind]) {
        open_member(out, "attributeTypes");
        write::array(out, kinds, |out, kind| write::string(out, kind.name()));
    }

    /// Begins a document about `name`: its identifier is the expanded name.
    pub(crate) fn open(&self, out: &mut Vec<u8>, name: Symbol, kind: &str, member: &str) {
        out.extend_from_slice(b"{\"id\":");
        write::string(out, self.symbols.name(name));
        out.extend_from_slice(b",\"type\":");
        write::string(out, kind);
        open_member(out, member);
        self.name(out, name);
    }

    /// Begins a list of all there is.
    pub(crate) fn open_list(&self, out: &mut Vec<u8>, kind: &str) {
        out.extend_from_slice(b"{\"id\":\"urn:ngsi-ld:");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b":all\",\"type\":");
        write::string(out, kind);
    }

    /// Ends a document, with its context where the body carries it (6.3.6).
    pub(crate) fn close(&self, out: &mut Vec<u8>) {
        if self.media == Media::LdJson {
            open_member(out, "@context");
            out.extend_from_slice(self.context().json().as_bytes());
        }
        out.push(b'}');
    }
}

/// Appends a further member's name.
pub(crate) fn open_member(out: &mut Vec<u8>, member: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(member.as_bytes());
    out.extend_from_slice(b"\":");
}
