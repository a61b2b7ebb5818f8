//! What the service can do, for clients and registries (VOSI 1.1 3.1, TAPRegExt 1.0).
//!
//! Exactly one capability has the standard identifier of TAP (TAP 1.1 2.4). The list of functions is the one that the
//! resolver reads, the list of formats the one that results are chosen from, so neither can promise more than is done.

use std::fmt::Write as _;
use std::time::Duration;

use trifid_archive_adql::functions::table::DEFINITIONS;
use trifid_archive_adql::udf::{Feature, FeatureGroup, language_features, signature};
use trifid_archive_engine::jobs::Limits as JobLimits;
use trifid_archive_engine::obscore;

use crate::format::{Formats, Listed};
use crate::settings::{Hosts, Resolved};
use crate::xml;

/// What the document tells.
pub(crate) struct Facts<'f> {
    /// The URL of the door's root.
    pub(crate) root: &'f str,
    pub(crate) settings: &'f Resolved,
    pub(crate) formats: &'f Formats,
    pub(crate) jobs: &'f JobLimits,
    /// Whether `ivoa.obscore` is complete.
    pub(crate) has_obscore: bool,
    /// URL schemes that may be uploaded from.
    pub(crate) upload_schemes: &'f [String],
}

/// The document (TAPRegExt 1.0 2.1: the namespaces).
pub(crate) fn document(facts: &Facts<'_>) -> String {
    let mut out = String::with_capacity(16 << 10);
    out.push_str(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <vosi:capabilities xmlns:vosi=\"http://www.ivoa.net/xml/VOSICapabilities/v1.0\" \
         xmlns:vr=\"http://www.ivoa.net/xml/VOResource/v1.0\" \
         xmlns:vs=\"http://www.ivoa.net/xml/VODataService/v1.1\" \
         xmlns:tr=\"http://www.ivoa.net/xml/TAPRegExt/v1.0\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\n",
    );
    access(&mut out, facts);
    for (standard, path) in [
        ("ivo://ivoa.net/std/VOSI#capabilities", "/capabilities"),
        ("ivo://ivoa.net/std/VOSI#availability", "/availability"),
        ("ivo://ivoa.net/std/VOSI#tables-1.1", "/tables"),
    ] {
        neighbour(&mut out, facts.root, standard, path);
    }
    examples(&mut out, facts.root);
    out.push_str("</vosi:capabilities>\n");
    out
}

/// The capability of TAP itself (TAPRegExt 1.0 2.7); ObsCore is declared while it is complete (TAPRegExt 1.0 2.2).
fn access(out: &mut String, facts: &Facts<'_>) {
    out.push_str(
        "<capability standardID=\"ivo://ivoa.net/std/TAP\" xsi:type=\"tr:TableAccess\">\n\
         <interface xsi:type=\"vs:ParamHTTP\" role=\"std\" version=\"1.1\"><accessURL use=\"base\">",
    );
    xml::text(out, facts.root);
    out.push_str("</accessURL></interface>\n");
    if facts.has_obscore {
        out.push_str("<dataModel");
        xml::attribute(out, "ivo-id", obscore::IVOID);
        out.push_str(">ObsCore 1.1</dataModel>\n");
    }
    language(out);
    facts.formats.list().for_each(|listed| format(out, &listed));
    upload_methods(out, facts);
    limits(out, facts);
    out.push_str("</capability>\n");
}

fn language(out: &mut String) {
    out.push_str(
        "<language><name>ADQL</name>\
         <version ivo-id=\"ivo://ivoa.net/std/ADQL#v2.0\">2.0</version>\
         <version ivo-id=\"ivo://ivoa.net/std/ADQL#v2.1\">2.1</version>\
         <description>ADQL 2.1 with all optional features</description>\n",
    );
    groups().iter().for_each(|group| features(out, group));
    out.push_str("</language>\n");
}

/// The features of the language, as clients of today understand them. The group of conditional functions came with the
/// last revision of ADQL 2.1 and validators refuse it; a client that reads its one function as a user-defined one
/// can call it all the same.
fn groups() -> Vec<FeatureGroup> {
    let (late, mut groups): (Vec<_>, Vec<_>) =
        language_features().into_iter().partition(|group| group.ivoid.ends_with("features-adql-conditional"));
    let declared = late.into_iter().flat_map(|group| group.features).flat_map(|feature| signatures(&feature));
    if let Some(udf) = groups.iter_mut().find(|group| group.ivoid.ends_with("features-udf")) {
        udf.features.extend(declared);
    }
    groups
}

/// A function of the standard as if it were a user-defined one: each way to call it.
fn signatures(feature: &Feature) -> Vec<Feature> {
    let definition = DEFINITIONS.iter().find(|definition| definition.names.contains(&&*feature.form));
    let forms = definition.into_iter().flat_map(|definition| definition.forms);
    let signature = |form| Feature { form: signature(&feature.form, form), description: feature.description };
    forms.map(signature).collect()
}

fn features(out: &mut String, group: &FeatureGroup) {
    out.push_str("<languageFeatures");
    xml::attribute(out, "type", &spelled(group.ivoid));
    out.push_str(">\n");
    for feature in &group.features {
        out.push_str("<feature>");
        xml::element(out, "form", &feature.form);
        xml::optional(out, "description", feature.description);
        out.push_str("</feature>\n");
    }
    out.push_str("</languageFeatures>\n");
}

/// The identifier as TAPRegExt 1.0 spells it. Case does not count in one (IVOA Identifiers 2.0 2.1), but clients older
/// than ADQL 2.1, which spells it in lower case, compare it byte by byte.
fn spelled(ivoid: &str) -> String {
    ivoid.replace("ivo://ivoa.net/std/tapregext#", "ivo://ivoa.net/std/TAPRegExt#")
}

fn format(out: &mut String, listed: &Listed<'_>) {
    out.push_str("<outputFormat");
    if let Some(ivoid) = listed.ivoid {
        xml::attribute(out, "ivo-id", ivoid);
    }
    out.push('>');
    xml::element(out, "mime", listed.media);
    listed.names.iter().for_each(|name| xml::element(out, "alias", name));
    out.push_str("</outputFormat>\n");
}

/// TAPRegExt 1.0 2.5: what a client may upload, and from where.
fn upload_methods(out: &mut String, facts: &Facts<'_>) {
    let is_open = facts.settings.upload.hosts != Hosts::None;
    let schemes = facts.upload_schemes.iter().filter(|_| is_open).map(String::as_str);
    for method in std::iter::once("inline").chain(schemes) {
        // Writing to a string does not fail.
        let _ = writeln!(out, "<uploadMethod ivo-id=\"ivo://ivoa.net/std/TAPRegExt#upload-{method}\"/>");
    }
}

/// TAPRegExt 1.0 2.6.
fn limits(out: &mut String, facts: &Facts<'_>) {
    let seconds = |span: Duration| span.as_secs();
    let (jobs, settings) = (facts.jobs, facts.settings);
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "<retentionPeriod><default>{}</default><hard>{}</hard></retentionPeriod>\n\
         <executionDuration><default>{}</default><hard>{}</hard></executionDuration>\n\
         <outputLimit><default unit=\"row\">{}</default><hard unit=\"row\">{}</hard></outputLimit>\n\
         <uploadLimit><default unit=\"row\">{rows}</default><hard unit=\"row\">{rows}</hard></uploadLimit>",
        seconds(jobs.retention),
        seconds(jobs.retention),
        seconds(jobs.execution_default),
        seconds(jobs.execution),
        settings.output_default,
        settings.output_limit,
        rows = settings.upload.rows,
    );
}

fn neighbour(out: &mut String, root: &str, standard: &str, path: &str) {
    out.push_str("<capability");
    xml::attribute(out, "standardID", standard);
    out.push_str(
        "><interface xsi:type=\"vs:ParamHTTP\" role=\"std\" version=\"1.1\"><accessURL use=\"full\">",
    );
    xml::text(out, root);
    out.push_str(path);
    out.push_str("</accessURL></interface></capability>\n");
}

/// DALI 1.1 2.3: found by its own standard identifier.
fn examples(out: &mut String, root: &str) {
    out.push_str(
        "<capability standardID=\"ivo://ivoa.net/std/DALI#examples\">\
         <interface xsi:type=\"vr:WebBrowser\"><accessURL use=\"full\">",
    );
    xml::text(out, root);
    out.push_str("/examples</accessURL></interface></capability>\n");
}
