//! Shells for others, things fetched and run unseen, mining.

use std::sync::LazyLock;

use regex::Regex;

use super::{Finding, FindingConfidence, FindingLabel, pattern};

static PATTERNS: LazyLock<Vec<(Regex, FindingLabel, FindingConfidence, &str)>> = LazyLock::new(
    || {
        use FindingConfidence::{High, Low, Medium};
        use FindingLabel::{DownloadAndRun, Mining, RemoteShell};
        let shell = r"(?:sudo\s+(?:-\S+\s+)*)?(?:/\S*/)?(?:ba|da|z|k|a)?sh\b";
        let interpreter = r"(?:sudo\s+(?:-\S+\s+)*)?(?:/\S*/)?(?:(?:ba|da|z|k|a)?sh|python[23]?|perl|ruby|node|php)\b";
        [
        (r"/dev/(?:tcp|udp)/[\w.$\{\}-]+/[\w$\{\}]+".to_owned(), RemoteShell, High, "connection through /dev/tcp"),
        (r"\b(?:nc|ncat|netcat)\b[^\n|;&]{0,80}\s(?:-[a-z]*[ec]|--exec|--sh-exec)\s+\S*(?:sh|cmd|powershell)\b".to_owned(), RemoteShell, High, "netcat that hands out a shell"),
        (r"\bmkfifo\b[^\n]{0,80}\b(?:nc|ncat|netcat|telnet)\b".to_owned(), RemoteShell, High, "shell through a named pipe"),
        (r"\bsocat\b[^\n]{0,120}\bexec:".to_owned(), RemoteShell, High, "socat that hands out a shell"),
        (r"(?s)socket\.socket\(.{0,200}\bdup2\(.{0,200}(?:/bin/(?:ba)?sh|pty\.spawn|subprocess)".to_owned(), RemoteShell, High, "shell over a socket (Python)"),
        (r"(?i)\bperl\b[^\n]{0,40}-e[^\n]{0,200}Socket[^\n]{0,300}\bexec\b".to_owned(), RemoteShell, High, "shell over a socket (Perl)"),
        (r"\bruby\b[^\n]{0,40}-rsocket[^\n]{0,200}\bexec\b".to_owned(), RemoteShell, High, "shell over a socket (Ruby)"),
        (r"(?i)\bphp\b[^\n]{0,40}-r[^\n]{0,60}fsockopen\([^\n]{0,120}(?:exec|shell_exec|proc_open|system)\(".to_owned(), RemoteShell, High, "shell over a socket (PHP)"),
        (r"(?i)new-object\s+(?:system\.)?net\.sockets\.tcpclient\b".to_owned(), RemoteShell, High, "shell over a socket (PowerShell)"),
        (r#"(?s)net\.Socket\(\).{0,160}spawn\(\s*['"]/bin/(?:ba)?sh['"]"#.to_owned(), RemoteShell, High, "shell over a socket (Node)"),
        (r"\bopenssl\s+s_client\b[^\n]{0,80}\|\s*(?:/bin/)?(?:ba)?sh\b".to_owned(), RemoteShell, High, "shell through TLS"),

        (format!(r"\b(?:curl|wget|fetch|aria2c)\b[^\n;]{{0,200}}\|\s*(?:tee\s+\S+\s*\|\s*)?(?:base64\s+(?:-d|--decode)\s*\|\s*|gunzip\s*(?:-c\s*)?\|\s*)?(?:env\s+\S+\s+)?{interpreter}"), DownloadAndRun, High, "download piped into an interpreter"),
        (format!(r#"(?:{shell}\s+-\w*c\s+|\beval\s+|\bsource\s+|\.\s+)["']?(?:\$\(|`|<\()\s*(?:curl|wget)\b"#), DownloadAndRun, High, "download run as a command"),
        (format!(r"{shell}\s+<\(\s*(?:curl|wget)\b"), DownloadAndRun, High, "download run as a file"),
        (format!(r"\b(?:curl|wget)\b[^\n]{{0,200}}(?:-o|-O|>)\s*(\S+)[^\n]{{0,80}}(?:&&|;)\s*(?:chmod\s+(?:\+x|[0-7]{{3,4}})\s+\S+\s*(?:&&|;)\s*(?:\./|/tmp/|{interpreter})|{shell}\s+\S+)"), DownloadAndRun, Medium, "download, made a program, run"),
        (format!(r"\bbase64\s+(?:-d|-D|--decode)\b[^\n]{{0,80}}\|\s*{interpreter}"), DownloadAndRun, Medium, "decoded text run as a command"),
        (r"(?i)\b(?:exec|eval)\(\s*(?:compile\()?\s*(?:requests\.get|urllib\.request\.urlopen|urlopen|httpx\.get)\(".to_owned(), DownloadAndRun, High, "download run as code (Python)"),
        (r"(?i)\b(?:exec|eval)\(\s*(?:__import__\(['\x22]base64['\x22]\)\.|base64\.)b64decode\(".to_owned(), DownloadAndRun, Medium, "decoded text run as code (Python)"),
        (r"(?i)\b(?:iex|invoke-expression)\b[^\n]{0,80}(?:downloadstring|invoke-webrequest|\biwr\b|\birm\b|invoke-restmethod)".to_owned(), DownloadAndRun, High, "download run as a command (PowerShell)"),
        (r"(?i)(?:downloadstring|invoke-webrequest|\biwr\b|\birm\b)[^\n]{0,120}\|\s*(?:iex|invoke-expression)\b".to_owned(), DownloadAndRun, High, "download run as a command (PowerShell)"),
        (r#"(?i)["'](?:pre|post)?install["']\s*:\s*["'][^"'\n]{0,120}\b(?:curl|wget)\b"#.to_owned(), DownloadAndRun, Medium, "download when a package is installed"),

        (r"(?i)\bstratum\+(?:tcp|ssl|tls|udp)://".to_owned(), Mining, High, "address of a mining pool"),
        (r"(?i)\b(?:xmrig|xmr-stak|cpuminer|minerd|cgminer|bfgminer|nbminer|phoenixminer|ethminer|t-rex\s+-a|lolminer|nanominer|ccminer|claymore)\b[^\n]{0,160}(?:\s-o\s|\s--url|\s-u\s|--donate-level|\s-p\s|--algo|\s-a\s|pool)".to_owned(), Mining, High, "mining program"),
        (r"(?i)--donate-level[= ]\d|\brandomx\b[^\n]{0,60}\bpool\b|\bcoinhive\.min\.js\b|\bcryptonight\b[^\n]{0,60}\b(?:pool|wallet)\b".to_owned(), Mining, Medium, "options of a mining program"),
        (r"(?i)\b(?:pool\.minexmr|supportxmr|nanopool|moneroocean|2miners|f2pool|nicehash|unmineable|hashvault)\.(?:com|org|pro|stream)\b".to_owned(), Mining, Low, "name of a mining pool"),
    ]
    .into_iter()
    .map(|(text, label, confidence, what)| (pattern(&text), label, confidence, what))
    .collect()
    },
);

pub(super) fn find(text: &str, findings: &mut Vec<Finding>) {
    for (pattern, label, confidence, what) in PATTERNS.iter() {
        findings.extend(pattern.find_iter(text).map(|found| Finding {
            label: *label,
            span: found.range(),
            confidence: *confidence,
            what,
        }));
    }
}
