-- Extends a lease and says whether signals wait.
local prefix, run, epoch, til = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local key = prefix .. ':run:' .. run
local row = redis.call('HMGET', key, 'status', 'epoch', 'graph')
if row[1] ~= 'running' or row[2] ~= epoch then return -1 end
redis.call('HSET', key, 'due', til)
redis.call('ZADD', prefix .. ':due:' .. row[3], til, run)
return redis.call('EXISTS', prefix .. ':sig:' .. run)
