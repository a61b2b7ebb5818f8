//! Values that need no query language: booleans, numbers, lists, and the representation keywords.

use super::{Param, Params};
use crate::limits::{
    JOIN_LEVELS_MAX, LIST_MEMBERS_MAX, OFFSET_ELEMENTS_MAX, PAGE_ELEMENTS_DEFAULT, PAGE_ELEMENTS_MAX,
};
use crate::problem::{Kind, Problem, Refusal, bad_data, invalid};

/// `limit`, `offset` and `count` (6.3.10, 6.3.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paging {
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    pub(crate) count: bool,
}

/// The keywords of `options` and `format` (6.3.7, 6.3.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Normalized,
    Concise,
    Simplified,
}

/// What `options` and `format` ask for together; `format` outranks `options` (6.3.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Options {
    pub(crate) form: Option<Form>,
    pub(crate) sys_attrs: bool,
    pub(crate) no_overwrite: bool,
    pub(crate) update: bool,
}

/// Which keywords an operation knows in `options`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionsOf {
    /// Representations and `sysAttrs` of what is read.
    Reading,
    /// The representation of what is written.
    Merging,
    /// `noOverwrite`.
    Appending,
    /// `replace` or `update`.
    Upserting,
}

impl Params<'_> {
    /// A boolean: `true` or `false` and nothing else; absent is false.
    pub(crate) fn boolean(&self, param: Param) -> Result<bool, Refusal> {
        Ok(self.optional_boolean(param)?.unwrap_or(false))
    }

    /// A boolean that may be absent.
    pub(crate) fn optional_boolean(&self, param: Param) -> Result<Option<bool>, Refusal> {
        match self.get(param) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(bad_data(format!("`{}` is `true` or `false`, not `{other}`", param.name()))),
        }
    }

    /// A natural number.
    pub(crate) fn number(&self, param: Param) -> Result<Option<usize>, Refusal> {
        let Some(text) = self.get(param) else { return Ok(None) };
        let digits = !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(Some(number)),
            _ => Err(bad_data(format!("`{}` is a natural number, not `{text}`", param.name()))),
        }
    }

    /// The members of a comma separated list, none of them empty.
    pub(crate) fn list(&self, param: Param) -> Result<Option<Vec<&str>>, Refusal> {
        let Some(text) = self.get(param) else { return Ok(None) };
        let members: Vec<&str> = text.split(',').map(str::trim).take(LIST_MEMBERS_MAX + 1).collect();
        if members.len() > LIST_MEMBERS_MAX {
            return Err(bad_data(format!("`{}` has more than {LIST_MEMBERS_MAX} members", param.name())));
        }
        if members.contains(&"") {
            return Err(bad_data(format!("`{}` has an empty member", param.name())));
        }
        Ok(Some(members))
    }

    /// The page that is asked for.
    pub(crate) fn paging(&self) -> Result<Paging, Refusal> {
        let count = self.boolean(Param::Count)?;
        let limit = self.number(Param::Limit)?.unwrap_or(PAGE_ELEMENTS_DEFAULT);
        let offset = self.number(Param::Offset)?.unwrap_or(0);
        if limit == 0 && !count {
            // 6.3.13: an empty page is worth asking for only to learn the count.
            return Err(bad_data("`limit=0` needs `count=true`"));
        }
        if limit > PAGE_ELEMENTS_MAX {
            let detail = format!("`limit` is {limit}; a page has at most {PAGE_ELEMENTS_MAX} elements");
            return Err(Problem::new(Kind::TooManyResults, detail).into());
        }
        if offset > OFFSET_ELEMENTS_MAX {
            let detail = format!("`offset` is {offset}; it may skip at most {OFFSET_ELEMENTS_MAX} elements");
            return Err(Problem::new(Kind::TooManyResults, detail).into());
        }
        Ok(Paging { limit, offset, count })
    }

    /// `joinLevel`, a positive integer (Table 5.2.23-1).
    pub(crate) fn join_level(&self) -> Result<Option<usize>, Refusal> {
        self.number(Param::JoinLevel)?.map(check_join_level).transpose()
    }

    /// `options` and `format` of an operation.
    pub(crate) fn options(&self, of: OptionsOf) -> Result<Options, Refusal> {
        let mut options = Options::default();
        for word in self.get(Param::Options).into_iter().flat_map(|text| text.split(',')) {
            options.add(word.trim(), of)?;
        }
        if let Some(word) = self.get(Param::Format) {
            let form = Form::from_keyword(word);
            options.form = Some(form.ok_or_else(|| invalid(format!("`format` cannot be `{word}`")))?);
        }
        Ok(options)
    }
}

/// Refuses a `joinLevel` that is zero or beyond the limit.
fn check_join_level(level: usize) -> Result<usize, Refusal> {
    if (1..=JOIN_LEVELS_MAX).contains(&level) {
        return Ok(level);
    }
    Err(bad_data(format!("`joinLevel` is a positive integer of at most {JOIN_LEVELS_MAX}, not {level}")))
}

impl Form {
    fn from_keyword(word: &str) -> Option<Form> {
        match word {
            "normalized" => Some(Form::Normalized),
            "concise" => Some(Form::Concise),
            "simplified" | "keyValues" => Some(Form::Simplified),
            _ => None,
        }
    }
}

impl Options {
    fn add(&mut self, word: &str, of: OptionsOf) -> Result<(), Refusal> {
        match (of, word) {
            (OptionsOf::Reading, "sysAttrs") => self.sys_attrs = true,
            (OptionsOf::Appending, "noOverwrite") => self.no_overwrite = true,
            (OptionsOf::Upserting, "update") => self.update = true,
            (OptionsOf::Upserting, "replace") => self.update = false,
            (OptionsOf::Reading | OptionsOf::Merging, word) => {
                let form = Form::from_keyword(word).ok_or_else(|| unknown_option(word))?;
                if self.form.is_some_and(|before| before != form) {
                    return Err(invalid("`options` names two representations"));
                }
                self.form = Some(form);
            }
            (OptionsOf::Appending | OptionsOf::Upserting, word) => return Err(unknown_option(word)),
        }
        Ok(())
    }
}

fn unknown_option(word: &str) -> Refusal {
    invalid(format!("`options` cannot contain `{word}` here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Set;

    fn params(raw: &str) -> Params<'_> {
        Params::parse(Some(raw), Set::ALL).unwrap()
    }

    fn kind<T: std::fmt::Debug>(result: Result<T, Refusal>) -> Kind {
        match result {
            Err(Refusal::Problem(problem)) => problem.kind,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn booleans_have_two_spellings() {
        assert_eq!(params("count=true").boolean(Param::Count), Ok(true));
        assert_eq!(params("count=false").optional_boolean(Param::Count), Ok(Some(false)));
        assert_eq!(params("").optional_boolean(Param::Count), Ok(None));
        for raw in ["count=True", "count=1", "count=", "count"] {
            assert_eq!(kind(params(raw).boolean(Param::Count)), Kind::BadRequestData, "{raw}");
        }
    }

    #[test]
    fn a_page_is_bounded() {
        let paging = |limit, offset, count| Ok(Paging { limit, offset, count });
        assert_eq!(params("").paging(), paging(20, 0, false));
        assert_eq!(params("limit=5&offset=10&count=true").paging(), paging(5, 10, true));
        assert_eq!(params("limit=0&count=true").paging(), paging(0, 0, true));
        for (raw, expected) in [
            ("limit=0", Kind::BadRequestData),
            ("limit=-1", Kind::BadRequestData),
            ("limit=", Kind::BadRequestData),
            ("limit=%2B5", Kind::BadRequestData),
            ("offset=1.5", Kind::BadRequestData),
            ("limit=1001", Kind::TooManyResults),
            ("limit=99999999999999999999", Kind::BadRequestData),
            ("offset=999999999999999", Kind::TooManyResults),
        ] {
            assert_eq!(kind(params(raw).paging()), expected, "{raw}");
        }
    }

    #[test]
    fn format_outranks_options_and_unknown_words_are_refused() {
        let reading = |raw: &'static str| params(raw).options(OptionsOf::Reading);
        assert_eq!(reading("options=keyValues,sysAttrs").unwrap().form, Some(Form::Simplified));
        assert!(reading("options=keyValues,sysAttrs").unwrap().sys_attrs);
        assert_eq!(reading("options=normalized&format=concise").unwrap().form, Some(Form::Concise));
        for raw in [
            "options=x",
            "options=keyValues,invalid",
            "options=",
            "format=x",
            "options=keyValues,concise",
            "options=noOverwrite",
        ] {
            assert_eq!(kind(reading(raw)), Kind::InvalidRequest, "{raw}");
        }
        assert!(params("options=noOverwrite").options(OptionsOf::Appending).unwrap().no_overwrite);
        assert!(params("options=update").options(OptionsOf::Upserting).unwrap().update);
        assert!(!params("options=replace").options(OptionsOf::Upserting).unwrap().update);
        assert_eq!(kind(params("options=sysAttrs").options(OptionsOf::Upserting)), Kind::InvalidRequest);
    }

    #[test]
    fn lists_have_no_holes() {
        assert_eq!(params("id=a,b").list(Param::Id).unwrap().unwrap(), ["a", "b"]);
        assert_eq!(params("").list(Param::Id), Ok(None));
        assert_eq!(kind(params("id=a,,b").list(Param::Id)), Kind::BadRequestData);
        assert_eq!(kind(params("id=").list(Param::Id)), Kind::BadRequestData);
    }

    #[test]
    fn join_levels_are_positive_and_bounded() {
        assert_eq!(params("joinLevel=2").join_level(), Ok(Some(2)));
        assert_eq!(kind(params("joinLevel=0").join_level()), Kind::BadRequestData);
        assert_eq!(kind(params("joinLevel=11").join_level()), Kind::BadRequestData);
    }
}
