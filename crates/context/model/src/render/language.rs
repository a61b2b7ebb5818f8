//! Language properties in one language (4.15): a Property with a string, and `lang` saying which.

use super::pen::Pen;
use super::scan;
use crate::record::{Instance, Kind};

impl Pen<'_, '_> {
    /// The tag and the text, both quoted, that answer the language preferences; `None` for an empty map.
    fn preferred<'v>(&self, instance: Instance<'v>) -> Option<(&'v str, &'v str)> {
        let preferences = self.r.style.lang?;
        let members = scan::members(instance.value());
        let chosen = preferences.choose(members.clone().map(|(tag, _)| inner(tag)))?;
        members.into_iter().find(|(tag, _)| inner(tag) == chosen)
    }

    /// The members of a language property as those of a Property with `lang`.
    pub(super) fn in_one_language(&mut self, instance: Instance<'_>, with_type: bool) {
        let Some((tag, text)) = self.preferred(instance) else {
            self.prefix(Kind::LanguageProperty, with_type);
            self.out.extend_from_slice(instance.value_bytes());
            return self.out.extend_from_slice(instance.members_bytes());
        };
        self.prefix(Kind::Property, with_type);
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(br#","lang":"#);
        self.out.extend_from_slice(tag.as_bytes());
        self.out.extend_from_slice(instance.members_bytes());
    }

    /// The text alone; the whole map where it is empty.
    pub(super) fn text_in_one_language(&mut self, instance: Instance<'_>) {
        match self.preferred(instance) {
            Some((_, text)) => self.out.extend_from_slice(text.as_bytes()),
            None => {
                self.out.push(b'{');
                self.prefix(Kind::LanguageProperty, false);
                self.out.extend_from_slice(instance.value_bytes());
                self.out.push(b'}');
            }
        }
    }
}

/// A tag without its quotes; tags have no escapes that would matter to a preference.
fn inner(tag: &str) -> &str {
    &tag[1..tag.len() - 1]
}
