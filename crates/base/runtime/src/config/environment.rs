//! The environment as a layer.

const PREFIX: &str = "TRIFID_";

/// The variable of a key: the key in capitals, its dots as underscores, behind the prefix.
pub(super) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase().replace('.', "_"))
}

/// The variables that speak to this program.
pub(super) fn relevant(environment: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    let ours = |(name, _): &&(String, String)| name.starts_with(PREFIX) && !is_service_link(name);
    environment.iter().filter(ours).map(|(name, value)| (name.as_str(), value.as_str()))
}

/// Kubernetes gives each container variables about every service in its namespace. Where a service is called
/// `trifid` these carry our prefix: `TRIFID_SERVICE_HOST`, `TRIFID_SERVICE_PORT[_NAME]`, `TRIFID_PORT` and
/// `TRIFID_PORT_9090_TCP[_ADDR|_PORT|_PROTO]`. Refusing them as unknown keys would stop every such pod, so no
/// key may begin with `service.` or `port.`.
fn is_service_link(name: &str) -> bool {
    let rest = &name[PREFIX.len()..];
    ["SERVICE_HOST", "SERVICE_PORT", "PORT"]
        .iter()
        .any(|link| rest.strip_prefix(link).is_some_and(|tail| tail.is_empty() || tail.starts_with('_')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_the_key_in_capitals() {
        assert_eq!(variable("http.listen"), "TRIFID_HTTP_LISTEN");
        assert_eq!(variable("context.sweep_interval"), "TRIFID_CONTEXT_SWEEP_INTERVAL");
        assert_eq!(variable("data_dir"), "TRIFID_DATA_DIR");
    }

    #[test]
    fn variables_of_others_and_service_links_are_left_alone() {
        let names =
            ["HOME", "TRIFID_PORT", "TRIFID_PORT_9090_TCP_ADDR", "TRIFID_SERVICE_PORT_HTTP", "TRIFID_DOORS"];
        let environment: Vec<_> = names.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        let left: Vec<_> = relevant(&environment).map(|(name, _)| name).collect();
        assert_eq!(left, ["TRIFID_DOORS"]);
    }
}
