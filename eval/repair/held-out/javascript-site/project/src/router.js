'use strict';

// Finds the handler for a path; `:name` takes one segment, a last `*` takes the rest.

function segments(path) {
  return path.split('/').filter((part) => part !== '');
}

class Router {
  constructor() {
    this.routes = [];
  }

  add(method, pattern, handler) {
    this.routes.push({ method: method.toUpperCase(), parts: segments(pattern), handler });
    return this;
  }

  match(parts, path) {
    const params = {};
    for (let i = 0; i < parts.length; i += 1) {
      const part = parts[i];
      if (part === '*') {
        params.rest = path.slice(i).join('/');
        return params;
      }
      if (i >= path.length) return null;
      if (part.startsWith(':')) {
        params[part.slice(1)] = decodeURIComponent(path[i]);
      } else if (part !== path[i]) {
        return null;
      }
    }
    return parts.length === path.length ? params : null;
  }

  find(method, path) {
    const wanted = segments(path.split('?')[0]);
    const allowed = new Set();
    for (const route of this.routes) {
      const params = this.match(route.parts, wanted);
      if (params === null) continue;
      if (route.method === method.toUpperCase()) {
        return { status: 200, handler: route.handler, params };
      }
      allowed.add(route.method);
    }
    if (allowed.size > 0) {
      return { status: 405, allow: [...allowed].sort().join(', ') };
    }
    return { status: 404 };
  }
}

module.exports = { Router, segments };
