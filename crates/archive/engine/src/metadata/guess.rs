//! What a column's name gives away.
//!
//! Only names whose meaning hardly varies between catalogues. An error column (`e_plx`, `plx_error`, `plx_err`) takes
//! its UCD and unit from the column that it belongs to.

use std::sync::Arc;

use trifid_archive_adql::types::{Field, Type};

/// Which values a guess is for.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    Real,
    Any,
}

/// Names, the values they are guessed for, UCD, unit (empty: none).
type Rule = (&'static [&'static str], Values, &'static str, &'static str);

const RULES: &[Rule] = &[
    (
        &["ra", "raj2000", "ra_icrs", "_raj2000", "raicrs", "ra_deg", "radeg", "alpha"],
        Values::Real,
        "pos.eq.ra",
        "deg",
    ),
    (
        &[
            "dec", "decj2000", "dej2000", "de_icrs", "dec_icrs", "_dej2000", "decdeg", "dec_deg", "dedeg",
            "delta", "decl",
        ],
        Values::Real,
        "pos.eq.dec",
        "deg",
    ),
    (&["glon", "gal_lon", "l_gal"], Values::Real, "pos.galactic.lon", "deg"),
    (&["glat", "gal_lat", "b_gal"], Values::Real, "pos.galactic.lat", "deg"),
    (&["elon", "ecl_lon"], Values::Real, "pos.ecliptic.lon", "deg"),
    (&["elat", "ecl_lat"], Values::Real, "pos.ecliptic.lat", "deg"),
    (&["plx", "parallax"], Values::Real, "pos.parallax.trig", "mas"),
    (&["pmra", "pm_ra"], Values::Real, "pos.pm;pos.eq.ra", "mas/yr"),
    (&["pmdec", "pmde", "pm_dec", "pm_de"], Values::Real, "pos.pm;pos.eq.dec", "mas/yr"),
    (&["rv", "radial_velocity", "hrv"], Values::Real, "spect.dopplerVeloc.opt", "km/s"),
    (&["z", "redshift", "zspec"], Values::Real, "src.redshift", ""),
    (&["umag"], Values::Real, "phot.mag;em.opt.U", "mag"),
    (&["bmag"], Values::Real, "phot.mag;em.opt.B", "mag"),
    (&["vmag"], Values::Real, "phot.mag;em.opt.V", "mag"),
    (&["rmag"], Values::Real, "phot.mag;em.opt.R", "mag"),
    (&["imag"], Values::Real, "phot.mag;em.opt.I", "mag"),
    (&["jmag"], Values::Real, "phot.mag;em.IR.J", "mag"),
    (&["hmag"], Values::Real, "phot.mag;em.IR.H", "mag"),
    (&["kmag", "ksmag"], Values::Real, "phot.mag;em.IR.K", "mag"),
    (&["gmag", "phot_g_mean_mag", "hpmag", "mag"], Values::Real, "phot.mag;em.opt", "mag"),
    (&["b_v", "bv", "b-v"], Values::Real, "phot.color;em.opt.B;em.opt.V", "mag"),
    (&["v_i", "vi", "v-i"], Values::Real, "phot.color;em.opt.V;em.opt.I", "mag"),
    (&["bp_rp"], Values::Real, "phot.color;em.opt.B;em.opt.R", "mag"),
    (&["mjd"], Values::Real, "time.epoch", "d"),
    (&["jd", "bjd", "hjd"], Values::Real, "time.epoch", "d"),
    (&["epoch"], Values::Real, "time.epoch", "yr"),
    (&["exptime", "exposure_time"], Values::Real, "time.duration;obs.exposure", "s"),
    (&["source_id", "hip", "id", "objid", "obj_id", "object_id", "tyc", "hd"], Values::Any, "meta.id", ""),
    (&["name", "designation", "main_id", "object", "target_name", "target"], Values::Any, "meta.id", ""),
    (&["healpix", "hpx", "_healpix_29"], Values::Any, "pos.healpix", ""),
];

/// Fills in what is absent.
pub fn fill(fields: &mut [Field]) {
    for field in fields.iter_mut() {
        if let Some((ucd, unit)) = of_name(&field.name, field.ty) {
            give(field, ucd.into(), unit);
        }
    }
    for at in 0..fields.len() {
        if let Some(owner) = owner(fields, at) {
            let (ucd, unit) = (fields[owner].ucd.clone(), fields[owner].unit.clone());
            if let Some(ucd) = ucd {
                let primary: String =
                    ucd.split(';').filter(|word| *word != "meta.main").collect::<Vec<_>>().join(";");
                give(
                    &mut fields[at],
                    format!("stat.error;{primary}").into(),
                    unit.as_deref().unwrap_or_default(),
                );
            }
        }
    }
    mark_main(fields, "pos.eq.ra");
    mark_main(fields, "pos.eq.dec");
    mark_main(fields, "meta.id");
}

fn of_name(name: &str, ty: Type) -> Option<(&'static str, &'static str)> {
    let real = matches!(ty, Type::Float | Type::Double);
    let fits = |rule: &&Rule| {
        (rule.1 == Values::Any || real) && rule.0.iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    RULES.iter().find(fits).map(|rule| (rule.2, rule.3))
}

fn give(field: &mut Field, ucd: Arc<str>, unit: &str) {
    // A column that says what it is knows better; a unit of its own only completes the guess.
    if field.ucd.is_none() {
        field.ucd = Some(ucd);
        if field.unit.is_none() && !unit.is_empty() {
            field.unit = Some(unit.into());
        }
    }
}

/// The column whose error this one is.
fn owner(fields: &[Field], at: usize) -> Option<usize> {
    let name = fields[at].name.to_ascii_lowercase();
    if !matches!(fields[at].ty, Type::Float | Type::Double) || fields[at].ucd.is_some() {
        return None;
    }
    let base = name
        .strip_prefix("e_")
        .or_else(|| name.strip_suffix("_error"))
        .or_else(|| name.strip_suffix("_err"))?;
    fields.iter().position(|field| field.name.eq_ignore_ascii_case(base))
}

/// Calls the first column with exactly this UCD the main one, unless another is that already.
fn mark_main(fields: &mut [Field], ucd: &str) {
    let main = format!("{ucd};meta.main");
    if fields.iter().any(|field| field.ucd.as_deref() == Some(main.as_str())) {
        return;
    }
    if let Some(field) = fields.iter_mut().find(|field| field.ucd.as_deref() == Some(ucd)) {
        field.ucd = Some(main.into());
    }
}
