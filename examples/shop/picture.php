<?php
// Pushes a job that resizes a picture: php picture.php cat.jpg 640
// This is what Resqu's client sends. A project that uses that client changes only its host and port.

[, $path, $width] = $argv;
$address = getenv('CROSSDOCK_REDIS') ?: 'tcp://127.0.0.1:7379';

$job = json_encode([
    'class' => 'ResizePicture',
    'sourceId' => 'shop',
    'name' => 'pictures',
    'args' => ['path' => $path, 'width' => (int) $width],
    'environment' => ['host' => gethostname()],
    'id' => bin2hex(random_bytes(16)),
    'queue_time' => microtime(true),
]);

$socket = stream_socket_client($address, $code, $message, 5);
if (!$socket) {
    fwrite(STDERR, "$address: $message\n");
    exit(1);
}
$words = ['LPUSH', 'resqu-v4:unassigned', $job];
fwrite($socket, '*' . count($words) . "\r\n");
foreach ($words as $word) {
    fwrite($socket, '$' . strlen($word) . "\r\n$word\r\n");
}
$reply = fgets($socket);
fclose($socket);
if ($reply === false || $reply[0] !== ':') {
    fwrite(STDERR, 'the server refused the job: ' . $reply);
    exit(1);
}
echo "pushed $path\n";
