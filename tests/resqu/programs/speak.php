<?php
// One Redis connection by PHP's own extension, as Resqu's client has it: a command a line on stdin, as a JSON array of
// strings, and what the extension makes of the reply as a line of JSON on stdout. Its replies are PHP's: true, false,
// numbers, strings; what it throws is {"error": text}.
$redis = new Redis();
$redis->connect($argv[1], (int) $argv[2], 10.0);
while (($line = fgets(STDIN)) !== false) {
    $words = json_decode($line);
    $verb = array_shift($words);
    try {
        $redis->clearLastError();
        switch (strtoupper($verb)) {
            case 'EVAL':
            case 'EVALSHA':
                $text = array_shift($words);
                $keys = (int) array_shift($words);
                $reply = strtoupper($verb) == 'EVAL'
                    ? $redis->eval($text, $words, $keys) : $redis->evalSha($text, $words, $keys);
                break;
            case 'SET':
                $reply = count($words) > 2
                    ? $redis->set($words[0], $words[1], [strtolower($words[2])]) : $redis->set(...$words);
                break;
            case 'EXPIRE':
                $reply = $redis->expire($words[0], (int) $words[1]);
                break;
            case 'LREM':
                $reply = $redis->lRem($words[0], $words[2], (int) $words[1]);
                break;
            case 'BRPOPLPUSH':
                $reply = $redis->brpoplpush($words[0], $words[1], (int) $words[2]);
                break;
            case 'ZRANGEBYSCORE':
                $reply = $redis->zRangeByScore($words[0], $words[1], $words[2], ['limit' => [0, 1]]);
                break;
            default:
                $reply = $redis->{$verb}(...$words);
        }
        $error = $redis->getLastError();
        echo json_encode($error === null ? $reply : ['error' => $error]), "\n";
    } catch (RedisException $thrown) {
        echo json_encode(['error' => $thrown->getMessage()]), "\n";
    }
    flush();
}
