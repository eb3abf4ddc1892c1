-- Claims runs that are due. With a run id, that run only.
local prefix, graph, worker, now, til, limit, only =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local runs
if only ~= '' then
  graph = redis.call('HGET', prefix .. ':run:' .. only, 'graph')
  if not graph then return { 'none' } end
  local due = redis.call('ZSCORE', prefix .. ':due:' .. graph, only)
  if due and tonumber(due) <= tonumber(now) then runs = { only } else runs = {} end
else
  runs = redis.call('ZRANGEBYSCORE', prefix .. ':due:' .. graph, '-inf', now, 'LIMIT', 0, limit)
end
local leases = { 'ok' }
for _, run in ipairs(runs) do
  local key = prefix .. ':run:' .. run
  local epoch = redis.call('HINCRBY', key, 'epoch', 1)
  redis.call('HSET', key, 'status', 'running', 'owner', worker, 'due', til)
  redis.call('ZADD', prefix .. ':due:' .. graph, til, run)
  local head = redis.call('HMGET', key, 'head_next', 'head_hash')
  leases[#leases + 1] = run
  leases[#leases + 1] = tostring(epoch)
  leases[#leases + 1] = head[1]
  leases[#leases + 1] = head[2]
end
return leases
