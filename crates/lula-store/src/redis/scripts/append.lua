-- Appends to a run: every check first, then every write, because a script has no rollback.
local prefix, run, epoch, next, hash = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local new_next, new_hash, rest, wake = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local at = 10
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
local events, blobs, effects = section(1), section(2), section(3)
local approvals, ledger, takes, snapshots = section(6), section(2), section(1), section(3)

local key = prefix .. ':run:' .. run
local row = redis.call('HMGET', key, 'status', 'epoch', 'head_next', 'head_hash', 'graph')
if row[1] ~= 'running' or row[2] ~= epoch or row[3] ~= next or row[4] ~= hash then
  return 'fenced'
end
local states, subjects = {}, {}
local function look(id)
  if states[id] == nil then
    local found = redis.call('HMGET', prefix .. ':apr:' .. id, 'state', 'digest', 'run')
    if found[3] == run then
      states[id], subjects[id] = found[1], found[2]
    else
      states[id] = false
    end
  end
end
for _, change in ipairs(approvals) do
  local op, id, digest = change[1], change[2], change[3]
  look(id)
  if op == 'open' then
    if not states[id] then states[id], subjects[id] = change[4], digest end
  elseif op == 'use' then
    if states[id] ~= 'approved' or subjects[id] ~= digest then return 'approval:use:' .. id end
    states[id] = 'used'
  else
    if states[id] ~= 'open' then return 'approval:decide:' .. id end
    states[id] = op
  end
end

redis.call('HSET', key, 'head_next', new_next, 'head_hash', new_hash)
for _, event in ipairs(events) do redis.call('RPUSH', prefix .. ':ev:' .. run, event[1]) end
for _, blob in ipairs(blobs) do
  redis.call('SETNX', prefix .. ':blob:' .. blob[1], blob[2])
  redis.call('SREM', prefix .. ':condemned', blob[1])
  redis.call('SREM', prefix .. ':dropped', blob[1])
end
for _, effect in ipairs(effects) do
  redis.call('HSET', prefix .. ':eff:' .. run, effect[1], effect[3])
  local member = run .. ' ' .. effect[1]
  redis.call('SREM', prefix .. ':effs:intended', member)
  redis.call('SREM', prefix .. ':effs:unknown', member)
  if effect[2] ~= 'settled' then redis.call('SADD', prefix .. ':effs:' .. effect[2], member) end
end
for _, change in ipairs(approvals) do
  local op, id = change[1], change[2]
  local apr = prefix .. ':apr:' .. id
  local state = op
  if op == 'use' then state = 'used' end
  if op == 'open' then
    state = change[4]
    if redis.call('EXISTS', apr) == 0 then
      redis.call('HSET', apr, 'run', run, 'digest', change[3], 'state', state,
        'nonce', change[5], 'expires', change[6])
      redis.call('SADD', prefix .. ':aprs:' .. state, id)
    end
  else
    redis.call('SREM', prefix .. ':aprs:' .. redis.call('HGET', apr, 'state'), id)
    redis.call('HSET', apr, 'state', state)
    redis.call('SADD', prefix .. ':aprs:' .. state, id)
  end
end
for _, line in ipairs(ledger) do redis.call('HSET', prefix .. ':led:' .. run, line[1], line[2]) end
for _, signal in ipairs(takes) do redis.call('HDEL', prefix .. ':sig:' .. run, signal[1]) end
for _, snapshot in ipairs(snapshots) do
  redis.call('HSET', prefix .. ':snap:' .. run,
    'next', snapshot[1], 'hash', snapshot[2], 'body', snapshot[3])
end

local queue = prefix .. ':due:' .. row[5]
if rest == 'suspend' and redis.call('EXISTS', prefix .. ':sig:' .. run) == 1 then rest = 'yield' end
if rest == 'suspend' then
  redis.call('HSET', key, 'status', 'suspended', 'owner', '', 'due', wake)
  if wake == '' then redis.call('ZREM', queue, run) else redis.call('ZADD', queue, wake, run) end
elseif rest == 'yield' then
  redis.call('HSET', key, 'status', 'ready', 'owner', '', 'due', '0')
  redis.call('ZADD', queue, 0, run)
elseif rest == 'done' then
  redis.call('HSET', key, 'status', 'done', 'owner', '', 'due', '')
  redis.call('ZREM', queue, run)
end
redis.call('XADD', prefix .. ':watch', 'MAXLEN', '~', 10000, '*', 'h', 'r:' .. run)
return 'ok'
