//! One page for every error code, kept in `docs/errors/`. The match is exhaustive: a code without
//! a page does not compile.

use lula_protocol::Code;

macro_rules! pages {
    ($($code:ident = $name:literal),* $(,)?) => {
        /// The page of a code, in Markdown.
        pub const fn page(code: Code) -> &'static str {
            match code {
                $(Code::$code => include_str!(concat!("../../../docs/errors/", $name, ".md")),)*
            }
        }
    };
}

pages! {
    Internal = "L0000",
    BadCommandLine = "L0001",
    UnknownCode = "L0002",
    FileAccess = "L0003",
    UnknownKey = "L0101",
    BadValue = "L0102",
    BadToml = "L0103",
    ConfigUnreadable = "L0104",
    RepositoryOverreach = "L0105",
    EnvironmentUnfit = "L0201",
    GitUnusable = "L0202",
    NoStateDirectory = "L0203",
    ToolMissing = "L0204",
    SandboxRefused = "L0301",
    CommandNotStarted = "L0302",
    SandboxBroke = "L0303",
    WorkspaceTooWide = "L0304",
    CannotFork = "L0401",
    NoSuchWorkspace = "L0402",
    WorkspaceConflict = "L0403",
    ChangedSinceReview = "L0404",
    HeldBack = "L0405",
    WorkspacesFull = "L0406",
    WorkspaceUnusable = "L0407",
    BadRules = "L0501",
    UnknownApproval = "L0502",
    VoteRefused = "L0503",
    KeysUnusable = "L0504",
    AuditBroken = "L0505",
    AuditUnusable = "L0506",
    ApprovalsUnusable = "L0507",
    StoreUnusable = "L0601",
    LogBroken = "L0602",
    NoSuchRun = "L0603",
    BadModelName = "L0701",
    NoModelKey = "L0702",
    ModelUnusable = "L0703",
    NothingToRepair = "L0801",
    TestsCannotRun = "L0802",
    FlakyTests = "L0803",
    EnvironmentBroken = "L0804",
    NotARepository = "L0901",
    EmptyRepository = "L0902",
    RunBusy = "L0903",
    RunRefused = "L0904",
    PathRefused = "L1001",
    NothingThere = "L1002",
    OverLimit = "L1003",
    EditNotPlaced = "L1004",
    BadPattern = "L1005",
    EffectReused = "L1006",
    Fenced = "L1007",
    EffectUnknown = "L1008",
    NoWorkspace = "L1009",
    BadRequest = "L1010",
    NotAllowed = "L1011",
    Busy = "L1012",
    ToolBroke = "L1013",
    ChangedMeanwhile = "L1014",
}

/// The title of a page: its first line without the code.
pub fn title(code: Code) -> &'static str {
    let first = page(code).lines().next().unwrap_or_default();
    first.split_once(": ").map_or(first, |(_, title)| title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_about_its_code_and_says_what_to_do() {
        for &code in Code::ALL {
            let page = page(code);
            assert!(page.starts_with(&format!("# {code}: ")), "{code}");
            assert!(page.contains("\n## What to do\n"), "{code}");
        }
    }
}
