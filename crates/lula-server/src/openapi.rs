//! The OpenAPI document, made from the table of routes.

use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, Content, InfoBuilder, OpenApi, Paths, Ref, RefOr, Required, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use crate::identity::RoutePermission;
use crate::problem::Problem;
use crate::routes::{ROUTES, RouteMethod, RouteReply, RouteSchema, ServerRoute};

const ABOUT: &str = "Begin runs, follow them live, and answer what they ask. Every route but health and ready \
    needs a bearer token where server.auth is not off. Refusals are problem documents with the codes of \
    the command line.";

type NamedSchemas = Vec<(String, RefOr<Schema>)>;

fn of_type(kind: Type) -> Schema {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(kind))
        .into()
}

/// A reference to a schema, which is put among those that are named.
fn named(schema: &RouteSchema, all: &mut NamedSchemas) -> RefOr<Schema> {
    let name = (schema.name)();
    (schema.others)(all);
    all.push((name.clone(), (schema.of)()));
    Ref::from_schema_name(name).into()
}

fn operation(route: &ServerRoute, all: &mut NamedSchemas) -> OperationBuilder {
    let mut operation = OperationBuilder::new()
        .operation_id(Some(route.id))
        .summary(Some(route.summary));
    if let Some((_, rest)) = route.path.split_once('{') {
        let name = rest.split('}').next().unwrap_or_default();
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(of_type(Type::String)));
        operation = operation.parameter(parameter);
    }
    for one in route.parameters {
        let kind = if one.is_number {
            Type::Integer
        } else {
            Type::String
        };
        let parameter = ParameterBuilder::new()
            .name(one.name)
            .parameter_in(if one.is_header {
                ParameterIn::Header
            } else {
                ParameterIn::Query
            })
            .required(Required::False)
            .description(Some(one.about))
            .schema(Some(of_type(kind)));
        operation = operation.parameter(parameter);
    }
    if let Some(body) = &route.body {
        let content = Content::new(Some(named(body, all)));
        let body = RequestBodyBuilder::new()
            .required(Some(Required::True))
            .content("application/json", content);
        operation = operation.request_body(Some(body.build()));
    }
    let (status, content, kind) = match &route.reply {
        RouteReply::Json(status, schema) => (
            *status,
            Content::new(Some(named(schema, all))),
            "application/json",
        ),
        // What a stream holds is told event by event, which a schema of the whole would not say.
        RouteReply::Content(kind) if *kind == "text/event-stream" => {
            (200, Content::new(None::<Schema>), *kind)
        }
        RouteReply::Content(kind) => (200, Content::new(Some(of_type(Type::String))), *kind),
    };
    let content = if route.id == "openapi" {
        Content::new(Some(of_type(Type::Object)))
    } else {
        content
    };
    let done = ResponseBuilder::new()
        .description("It was done")
        .content(kind, content);
    operation = operation.response(status.to_string(), done.build());
    if matches!(route.id, "run_events") {
        let over = ResponseBuilder::new().description("The run is over and everything was seen");
        operation = operation.response("204", over.build());
    }
    let problem = Content::new(Some(Ref::from_schema_name("Problem")));
    let refused = ResponseBuilder::new()
        .description("Why it was not done")
        .content("application/problem+json", problem);
    operation = operation.response("default", refused.build());
    if route.permission == RoutePermission::Open {
        operation.securities(Some(Vec::new()))
    } else {
        operation.security(SecurityRequirement::new("bearer", Vec::<String>::new()))
    }
}

/// The document that describes the API.
pub fn document() -> OpenApi {
    let mut all = NamedSchemas::new();
    Problem::schemas(&mut all);
    all.push((Problem::name().into_owned(), Problem::schema()));
    let mut paths = Paths::new();
    for route in ROUTES {
        let method = match route.method {
            RouteMethod::Get => HttpMethod::Get,
            RouteMethod::Post => HttpMethod::Post,
        };
        paths.add_path_operation(route.path, vec![method], operation(route, &mut all));
    }
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "A key of `lula server keys add`, or a token of the issuer",
        ));
    let mut components =
        ComponentsBuilder::new().security_scheme("bearer", SecurityScheme::Http(bearer.build()));
    for (name, schema) in all {
        components = components.schema(name, schema);
    }
    let info = InfoBuilder::new()
        .title("Lula server")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT));
    let mut api = OpenApi::new(info.build(), paths);
    api.components = Some(components.build());
    api
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_that_is_kept_is_the_one_that_is_made() {
        let kept = include_str!("../../../docs/server-openapi.json");
        let kept: serde_json::Value = serde_json::from_str(kept).unwrap();
        let made = serde_json::to_value(document()).unwrap();
        assert_eq!(
            kept, made,
            "run: lula serve, and curl -s 127.0.0.1:7410/v1/openapi.json | python3 -m json.tool > \
             docs/server-openapi.json"
        );
    }

    #[test]
    fn every_route_is_in_it_and_every_reference_leads_somewhere() {
        let made = serde_json::to_value(document()).unwrap();
        for route in ROUTES {
            let method = route.method.name().to_lowercase();
            let id = &made["paths"][route.path][method]["operationId"];
            assert_eq!(id, route.id);
        }
        let text = made.to_string();
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(!made["components"]["schemas"][name].is_null(), "{name}");
        }
    }
}
