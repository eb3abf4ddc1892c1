//! Text that gives orders to an agent: lightly, in a few languages.

use std::sync::LazyLock;

use regex::Regex;

use super::{Finding, FindingConfidence, FindingLabel, pattern};

static PATTERNS: LazyLock<Vec<(Regex, FindingConfidence, &str)>> = LazyLock::new(|| {
    let instructions = r"(?:instructions?|prompts?|directives?|guidelines|orders|programming)";
    let earlier = r"(?:previous|prior|above|earlier|preceding|foregoing|existing|original|system|initial|your)";
    [
        (
            format!(r"(?i)\b(?:ignore|disregard|forget|override|bypass|neglect|skip)\s+(?:all\s+|any\s+|every\s+|everything\s+|the\s+|of\s+|these\s+|those\s+|my\s+)*{earlier}\s+(?:\w+\s+)?{instructions}\b"),
            FindingConfidence::High,
            "tells to ignore earlier instructions",
        ),
        (
            r"(?i)\b(?:ignore|disregard|forget)\s+(?:everything|all|anything)\s+(?:\w+\s+)?(?:above|before\s+this|you\s+(?:were|have\s+been)\s+told|i\s+said)\b".to_owned(),
            FindingConfidence::High,
            "tells to ignore what came before",
        ),
        (
            r"(?i)\b(?:attention|note\s+to|message\s+(?:to|for)|instructions?\s+for|dear|hey)\s*:?\s+(?:all\s+|any\s+|the\s+)?(?:ai|llm|language\s+model|coding|automated|autonomous)\s*(?:agents?|assistants?|models?|bots?|reviewers?)\b".to_owned(),
            FindingConfidence::Medium,
            "speaks to agents",
        ),
        (
            r"(?i)\bif\s+you(?:'re|\s+are)\s+(?:an?\s+)?(?:ai|llm|language\s+model|large\s+language\s+model|coding\s+agent|automated\s+agent|assistant)\b.{0,120}\b(?:must|should|please|run|execute|delete|send|print|include|output|approve|respond|reply|add|insert|post|open|fetch)\b".to_owned(),
            FindingConfidence::Medium,
            "gives orders to whoever is an agent",
        ),
        (
            r"(?i)\byou\s+are\s+now\s+(?:in\s+)?(?:dan\b|a\s+different|an?\s+unrestricted|developer\s+mode|jailbroken|no\s+longer\s+bound|free\s+(?:of|from)\b)".to_owned(),
            FindingConfidence::High,
            "gives the agent another role",
        ),
        (
            r"(?i)\b(?:do\s+not|don't|never|without)\s+(?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?|reveal(?:ing)?\s+(?:this\s+)?to|alert(?:ing)?|notify(?:ing)?|show(?:ing)?)\s+(?:this\s+to\s+|it\s+to\s+|anything\s+to\s+)?(?:the\s+)?(?:user|human|operator|developer|maintainer|reviewer)s?\b".to_owned(),
            FindingConfidence::Medium,
            "wants something kept from people",
        ),
        (
            r"(?i)\b(?:reveal|print|output|repeat|show|leak|exfiltrate|send|post|upload)\s+(?:me\s+)?(?:all\s+)?(?:of\s+)?(?:your|the\s+agent's|the\s+assistant's)\s+(?:system\s+prompt|hidden\s+prompt|initial\s+prompt|instructions\s+verbatim|environment\s+variables|credentials|api\s+keys?|secrets)\b".to_owned(),
            FindingConfidence::High,
            "asks for what the agent should keep",
        ),
        (
            r"(?im)^\s*(?:<\|?(?:im_start|system|endoftext)\|?>|\[/?INST\]|<<SYS>>|###\s*(?:system|new\s+instructions?)\s*:)".to_owned(),
            FindingConfidence::Medium,
            "pretends to be a turn of the conversation",
        ),
        (
            r"(?i)\b(?:new|updated|real|actual|secret)\s+(?:system\s+)?instructions?\s*(?:for\s+(?:you|the\s+(?:ai|agent|assistant|model))\s*)?:\s*\S".to_owned(),
            FindingConfidence::Low,
            "announces new instructions",
        ),
        (
            r"(?i)\b(?:ignorier|vergiss|missachte)\w*\s+(?:bitte\s+)?(?:alle\s+|die\s+|deine\s+)*(?:vorherigen|bisherigen|obigen|vorigen|früheren)\s+(?:anweisungen|anweisung|befehle|instruktionen|vorgaben)\b".to_owned(),
            FindingConfidence::High,
            "tells to ignore earlier instructions (German)",
        ),
        (
            r"(?i)\b(?:ignore[zr]?|oublie[zr]?)\s+(?:toutes?\s+|les\s+|tes\s+|vos\s+)*(?:instructions?|consignes?|directives?)\s+(?:pr[ée]c[ée]dentes?|ant[ée]rieures?|ci-dessus)".to_owned(),
            FindingConfidence::High,
            "tells to ignore earlier instructions (French)",
        ),
        (
            r"(?i)\b(?:ignora|ignore|olvida|olvide)\s+(?:todas?\s+|las\s+|tus\s+|sus\s+)*(?:instrucciones|[óo]rdenes|indicaciones)\s+(?:anteriores|previas)\b".to_owned(),
            FindingConfidence::High,
            "tells to ignore earlier instructions (Spanish)",
        ),
        (
            r"(?i)\bignor[ea]\s+(?:tutte\s+|todas\s+)?(?:le\s+|as\s+)?(?:istruzioni|instruções)\s+(?:precedenti|anteriores)\b".to_owned(),
            FindingConfidence::High,
            "tells to ignore earlier instructions (Italian, Portuguese)",
        ),
        (
            r"(?:忽略|无视|忘记)(?:所有|全部)?(?:之前|以前|上面|先前|以上)的?(?:所有|全部)?(?:指令|指示|说明|提示)".to_owned(),
            FindingConfidence::High,
            "tells to ignore earlier instructions (Chinese)",
        ),
        (
            r"(?:これまで|以前|上記|前)の(?:すべての|全ての)?(?:指示|命令|プロンプト)を(?:すべて|全て)?(?:無視|忘れ)".to_owned(),
            FindingConfidence::High,
            "tells to ignore earlier instructions (Japanese)",
        ),
        (
            r"(?i)(?:игнорируй|забудь|проигнорируй)(?:те)?\s+(?:все\s+)?(?:предыдущие|прежние|вышеуказанные)\s+(?:инструкции|указания|команды)".to_owned(),
            FindingConfidence::High,
            "tells to ignore earlier instructions (Russian)",
        ),
    ]
    .into_iter()
    .map(|(text, confidence, what)| (pattern(&text), confidence, what))
    .collect()
});

pub(super) fn find(text: &str, findings: &mut Vec<Finding>) {
    for (pattern, confidence, what) in PATTERNS.iter() {
        findings.extend(pattern.find_iter(text).map(|found| Finding {
            label: FindingLabel::Instruction,
            span: found.range(),
            confidence: *confidence,
            what,
        }));
    }
}
