'use strict';

const handlers = new Map();

function register(method, path, handler) {
  const key = `${method} ${path}`;
  if (handlers.has(key)) {
    throw new Error('already there: ' + key);
  }
  handlers.set(key, handler);
  return () => handlers.delete(key);
}

async function dispatch(request) {
  const key = `${request.method} ${request.path}`;
  const handler = handlers.get(key);

  // Nothing registered under this key.
  if (!handler) {
    return { status: 404, body: 'not found' };
  }
  try {
    const body = await handler(request);
    return { status: 200, body };
  } catch (error) {
    return { status: 500, body: error.message };
  }
}

const greet = (name) => {
  const words = ['grüß', 'dich', name];
  return words.join(' ') + ' – 你好';
};

module.exports = { register, dispatch, greet };
