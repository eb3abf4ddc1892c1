-- Creates a run with its first events.
local prefix, run, graph, due = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local at = 5
local function take()
  local value = ARGV[at]
  at = at + 1
  return value
end
local function section(width)
  local rows = {}
  for i = 1, tonumber(take()) do
    local row = {}
    for j = 1, width do row[j] = take() end
    rows[i] = row
  end
  return rows
end
local fields, events, blobs, ledger = section(2), section(1), section(2), section(2)
local key = prefix .. ':run:' .. run
if redis.call('EXISTS', key) == 1 then return 'exists' end
for _, field in ipairs(fields) do redis.call('HSET', key, field[1], field[2]) end
for _, event in ipairs(events) do redis.call('RPUSH', prefix .. ':ev:' .. run, event[1]) end
for _, blob in ipairs(blobs) do
  redis.call('SETNX', prefix .. ':blob:' .. blob[1], blob[2])
  redis.call('SREM', prefix .. ':condemned', blob[1])
  redis.call('SREM', prefix .. ':dropped', blob[1])
end
for _, line in ipairs(ledger) do redis.call('HSET', prefix .. ':led:' .. run, line[1], line[2]) end
redis.call('ZADD', prefix .. ':due:' .. graph, due, run)
redis.call('ZADD', prefix .. ':runs', 0, run)
local kind = 'r:'
if due == '0' then kind = 's:' end
redis.call('XADD', prefix .. ':watch', 'MAXLEN', '~', 10000, '*', 'h', kind .. run)
return 'ok'
