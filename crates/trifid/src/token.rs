//! `trifid token hash`: from a token to the line of the token file.
//!
//! The token comes by standard input and never as an argument, which every user of the machine could read in
//! the list of processes.

use std::io::{self, Read as _, Write as _};

use anyhow::{Context as _, ensure};
use clap::Args;
use trifid_base_web::auth::{Role, generate_token, hash_token};

/// Bytes of standard input that are looked at.
const INPUT_BYTES_MAX: u64 = 16 << 10;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Make a new token, and print it on standard error
    #[arg(long)]
    generate: bool,
    /// The tenant that it may address: a name, `-` for the default tenant, `*` for all
    #[arg(long, default_value = "-", allow_hyphen_values = true)]
    tenant: String,
    /// What it may do: read, write or admin
    #[arg(long, default_value = "read", value_parser = role)]
    role: Role,
    /// The name under which the logs speak of it
    #[arg(long)]
    name: Option<String>,
}

fn role(text: &str) -> Result<Role, String> {
    text.parse().map_err(|()| "one of read, write, admin".to_owned())
}

pub(crate) fn hash(arguments: &Arguments) -> anyhow::Result<()> {
    for word in [&arguments.tenant, arguments.name.as_ref().unwrap_or(&arguments.tenant)] {
        ensure!(!word.is_empty() && !word.contains(char::is_whitespace), "`{word}` is not one word");
    }
    let token = if arguments.generate { generate()? } else { read(io::stdin())? };
    let name = arguments.name.as_deref().unwrap_or_default();
    let line = format!("{} {} {} {name}", hash_token(&token), arguments.tenant, arguments.role);
    writeln!(io::stdout(), "{}", line.trim_end())?;
    Ok(())
}

fn generate() -> anyhow::Result<String> {
    let token = generate_token().context("the system has no randomness to give")?;
    writeln!(io::stderr(), "{token}")?;
    Ok(token)
}

fn read(input: impl io::Read) -> anyhow::Result<String> {
    let mut text = String::new();
    input.take(INPUT_BYTES_MAX).read_to_string(&mut text).context("cannot read the token")?;
    let token = text.trim();
    ensure!(!token.is_empty(), "standard input holds no token");
    ensure!(!token.contains(char::is_whitespace), "a token has no white space in it");
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word() {
        assert_eq!(read("secret\n".as_bytes()).unwrap(), "secret");
        assert!(read("".as_bytes()).is_err());
        assert!(read("two words".as_bytes()).is_err());
    }
}
