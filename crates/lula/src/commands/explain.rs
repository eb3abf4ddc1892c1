//! `lula explain CODE`

use lula_host::pages;
use lula_protocol::{Code, RunExit};
use serde::Serialize;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{STRONG, TextTable, paint};

#[derive(Serialize)]
struct Page {
    code: Code,
    title: &'static str,
    text: &'static str,
}

pub(super) fn run(code: Option<&str>, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let codes = match code {
        None => Code::ALL.to_vec(),
        Some(text) => {
            vec![
                text.parse()
                    .map_err(|error: lula_protocol::code::InvalidErrorCode| {
                        CommandFailure::new(Code::UnknownCode, RunExit::Usage, error.to_string())
                            .remedy("`lula explain` lists every code")
                    })?,
            ]
        }
    };
    let screen = &session.screen;
    if screen.is_json() {
        let pages: Vec<_> = codes
            .iter()
            .map(|&code| Page {
                code,
                title: pages::title(code),
                text: pages::page(code),
            })
            .collect();
        screen.document(&pages)?;
    } else if code.is_some() {
        for code in codes {
            screen.line(pages::page(code).trim_end())?;
        }
    } else {
        let mut table = TextTable::default();
        for code in codes {
            table.row([paint(STRONG, code), pages::title(code).to_owned()]);
        }
        screen.line(table.render(0).trim_end())?;
    }
    Ok(RunExit::Verified)
}
