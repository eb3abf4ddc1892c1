//! Schemas of the types that write themselves as one word or number.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::code::Code;
use crate::digest::Digest;
use crate::id::{ApprovalId, EffectId, Principal, RunId, WorkspaceId};
use crate::version::ProtocolVersion;

macro_rules! patterned {
    ($($name:ident = $pattern:expr, $about:literal;)*) => {
        $(impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "pattern": $pattern, "description": $about})
            }
        })*
    };
}

patterned! {
    RunId = "^run_[0-7][0-9a-hjkmnp-tv-z]{25}$", "A run";
    EffectId = "^eff_[0-7][0-9a-hjkmnp-tv-z]{25}$", "An effect: the same id never happens twice";
    WorkspaceId = "^ws_[0-7][0-9a-hjkmnp-tv-z]{25}$", "A workspace";
    ApprovalId = "^apr_[0-7][0-9a-hjkmnp-tv-z]{25}$", "A question put to a person";
    Principal = "^[A-Za-z0-9._@:/+-]{1,128}$", "A person or a service";
    Digest = "^b3:[0-9a-f]{64}$", "BLAKE3";
}

impl JsonSchema for Code {
    fn schema_name() -> Cow<'static, str> {
        "Code".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^L[0-9]{4}$",
            "description": "A stable error code; `lula explain CODE` tells more"
        })
    }
}

impl JsonSchema for ProtocolVersion {
    fn schema_name() -> Cow<'static, str> {
        "ProtocolVersion".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "const": Self::NUMBER})
    }
}
